package wire

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchVersion is the one that is spoken (Kafka 2.3 and newer).
const fetchVersion = 11

// FetchRequest reads one partition. It is answered at once, also with nothing.
type FetchRequest struct {
	Topic     string
	Partition int32
	Offset    int64
	MaxBytes  int  // of the records; the first batch is returned whole however large it is; 0 is 1 MiB
	Committed bool // up to the last stable offset only, with Aborted
}

// FetchResult is what lies at the offset.
type FetchResult struct {
	// Records are record batches as the broker stores them: the first may begin before the offset, the last may be cut
	// off, batches may be empty, control batches are in between. The caller owns it.
	Records []byte
	Aborted []Aborted // only with Committed; sorted by FirstOffset
}

// Aborted is a transaction of which Records may hold batches that do not count: those of the producer from FirstOffset
// to its next abort marker.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64
}

func (r *FetchRequest) String() string {
	return fmt.Sprintf("fetch topic %s partition %d from offset %d", r.Topic, r.Partition, r.Offset)
}

// Fetch reads from the partition's leader, once. It is an *Error with code 1 where the log does not hold the offset:
// below its start, or above its end.
func (c *Cluster) Fetch(ctx context.Context, request FetchRequest) (result FetchResult, err error) {
	leader, err := c.leader(ctx, request.Topic, request.Partition)
	if err != nil {
		return FetchResult{}, err
	}
	answer, err := c.send(ctx, &exchange{api: protocol.Fetch, broker: leader, talk: func(rw io.ReadWriter, version int16) (any, error) {
		return c.talkFetch(rw, version, &request)
	}})
	if fetched, ok := answer.(*kmsg.FetchResponse); ok {
		result, err = readFetched(fetched, &request)
	}
	c.doubtLeader(asked{partition{request.Topic, request.Partition}, leader}, err)
	return result, err
}

func (l *link) talkFetch(rw io.ReadWriter, version int16, request *FetchRequest) (*kmsg.FetchResponse, error) {
	if version < fetchVersion {
		return nil, &Error{Code: codeUnsupportedVersion, Request: request.String(), Message: fmt.Sprintf("the broker has version %d of Fetch, %d is needed", version, fetchVersion)}
	}
	serial, err := l.write(rw, request.question())
	if err != nil {
		return nil, err
	}
	return readAnswer(rw, serial, &kmsg.FetchResponse{Version: fetchVersion})
}

func (r *FetchRequest) question() *kmsg.FetchRequest {
	asked, topic, partition := kmsg.NewPtrFetchRequest(), kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	asked.Version, asked.MaxBytes = fetchVersion, int32(min(r.MaxBytes, maxFrame/2))
	if asked.MaxBytes <= 0 {
		asked.MaxBytes = 1 << 20
	}
	if r.Committed {
		asked.IsolationLevel = 1
	}
	asked.MinBytes, asked.SessionEpoch = 0, -1 // wait for nothing, and no session
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = r.Partition, r.Offset, asked.MaxBytes
	topic.Topic, topic.Partitions = r.Topic, append(topic.Partitions, partition)
	asked.Topics = append(asked.Topics, topic)
	return asked
}

func readFetched(answer *kmsg.FetchResponse, request *FetchRequest) (FetchResult, error) {
	failure := &Error{Code: answer.ErrorCode, Request: request.String(), Needs: "READ on topic " + request.Topic}
	if failure.Code != 0 {
		return FetchResult{}, failure
	}
	if len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return FetchResult{}, fmt.Errorf("%s: the answer has %d topics", request, len(answer.Topics))
	}
	topic, read := answer.Topics[0].Topic, &answer.Topics[0].Partitions[0]
	if topic != request.Topic || read.Partition != request.Partition {
		return FetchResult{}, fmt.Errorf("%s: the answer is for topic %s partition %d", request, topic, read.Partition)
	}
	if failure.Code = read.ErrorCode; failure.Code != 0 {
		return FetchResult{}, failure
	}
	result := FetchResult{Records: read.RecordBatches}
	for _, aborted := range read.AbortedTransactions {
		result.Aborted = append(result.Aborted, Aborted{aborted.ProducerID, aborted.FirstOffset})
	}
	slices.SortStableFunc(result.Aborted, func(a, b Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return result, nil
}

// Bounds are the ends of a partition's log.
type Bounds struct {
	First int64 // the first offset that is there
	End   int64 // the offset of the next record; the last stable offset where only committed ones count
}

// The times that ListOffsets takes for a log's ends.
const (
	earliest int64 = -2
	latest   int64 = -1
)

// Bounds asks the leaders of the partitions for the ends of their logs, as readers see them. A request goes to each
// leader twice.
func (c *Cluster) Bounds(ctx context.Context, topic string, partitions []int32, committed bool) (map[int32]Bounds, error) {
	bounds := make(map[int32]Bounds, len(partitions))
	byLeader, err := c.byLeader(ctx, topic, partitions)
	if err != nil {
		return nil, err
	}
	for leader, led := range byLeader {
		first, err := c.offsets(ctx, ends{topic, leader, led, committed, false, earliest})
		if err != nil {
			return nil, err
		}
		end, err := c.offsets(ctx, ends{topic, leader, led, committed, false, latest})
		if err != nil {
			return nil, err
		}
		for _, number := range led {
			bounds[number] = Bounds{First: first[number], End: end[number]}
		}
	}
	return bounds, nil
}

// LogEnds asks the leaders of the partitions where their own logs end: also after what is not replicated yet, and so
// is not in the Bounds.
func (c *Cluster) LogEnds(ctx context.Context, topic string, partitions []int32) (map[int32]int64, error) {
	all := make(map[int32]int64, len(partitions))
	byLeader, err := c.byLeader(ctx, topic, partitions)
	if err != nil {
		return nil, err
	}
	for leader, led := range byLeader {
		some, err := c.offsets(ctx, ends{topic, leader, led, false, true, latest})
		if err != nil {
			return nil, err
		}
		maps.Copy(all, some)
	}
	return all, nil
}

func (c *Cluster) byLeader(ctx context.Context, topic string, partitions []int32) (map[int32][]int32, error) {
	byLeader := map[int32][]int32{}
	for _, number := range partitions {
		leader, err := c.leader(ctx, topic, number)
		if err != nil {
			return nil, err
		}
		byLeader[leader] = append(byLeader[leader], number)
	}
	return byLeader, nil
}

// ends asks for one end of the partitions that one broker leads; Kafka refuses a partition that is named twice.
type ends struct {
	topic      string
	leader     int32
	partitions []int32
	committed  bool
	debug      bool // as the debugging consumer of ListOffsets, which is told of what is not replicated
	time       int64
}

func (c *Cluster) offsets(ctx context.Context, of ends) (map[int32]int64, error) {
	request := &listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{{Topic: of.topic}}}
	if of.committed {
		request.IsolationLevel = 1
	}
	if of.debug {
		request.ReplicaID = -2 // ListOffsetsRequest.DEBUGGING_REPLICA_ID
	}
	for _, number := range of.partitions {
		request.Topics[0].Partitions = append(request.Topics[0].Partitions,
			listoffsets.RequestPartition{Partition: number, CurrentLeaderEpoch: -1, Timestamp: of.time})
	}
	answer, err := ask[*listoffsets.Response](ctx, c.link, of.leader, request)
	if err != nil {
		c.doubtLeader(asked{partition{of.topic, of.partitions[0]}, of.leader}, err)
		return nil, err
	}
	return c.readOffsets(of, answer)
}

func (c *Cluster) readOffsets(of ends, answer *listoffsets.Response) (map[int32]int64, error) {
	found := make(map[int32]int64, len(of.partitions))
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				err := &Error{Code: p.ErrorCode, Request: fmt.Sprintf("find the ends of topic %s partition %d", of.topic, p.Partition),
					Needs: "DESCRIBE on topic " + of.topic}
				c.doubtLeader(asked{partition{of.topic, p.Partition}, of.leader}, err)
				return nil, err
			}
			found[p.Partition] = p.Offset
		}
	}
	for _, number := range of.partitions {
		if _, there := found[number]; !there {
			return nil, fmt.Errorf("find the ends of topic %s: the answer has no partition %d", of.topic, number)
		}
	}
	return found, nil
}
