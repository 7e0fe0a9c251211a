package wire

// Operations is a set of Kafka's operations (AclOperation.java), by their codes.
type Operations int32

// Operations on topics.
const (
	Read            = 3
	Write           = 4
	DescribeConfigs = 10
)

const unknownOperations Operations = -1 << 31

// Lacks says whether the operation is known not to be permitted.
func (o Operations) Lacks(operation int) bool {
	return o != unknownOperations && o&(1<<operation) == 0
}
