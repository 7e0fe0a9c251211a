package encode

// Transport is what carries the messages. It decides how attributes stand beside a value.
type Transport uint8

const (
	File  Transport = iota // values alone, a line each
	NATS                   // headers; no keys
	Kafka                  // headers, keys and messages without a value
)
