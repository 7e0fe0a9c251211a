package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchVersion is the newest that is spoken (Kafka 2.3).
const fetchVersion = 11

// FetchRequest reads one partition, up to its last stable offset. It is answered at once, also with nothing.
type FetchRequest struct {
	Topic     string
	Partition int32
	Offset    int64
	MaxBytes  int // of the records; the first batch is returned whole however large it is; 0 is 1 MiB
}

// FetchResult is what lies at the offset. RecordBatches are as the broker stores them: the first may begin before the
// offset, the last may be cut off, batches may be empty, control batches are in between. The caller owns them. They may
// hold batches that do not count: those of the producer of one of AbortedTransactions from FirstOffset to its next
// abort marker. These are sorted by FirstOffset.
type FetchResult = kmsg.FetchResponseTopicPartition

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
	asked, topic, partition := kmsg.NewPtrFetchRequest(), kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	asked.Version, asked.MaxBytes = fetchVersion, int32(min(cmp.Or(max(request.MaxBytes, 0), 1<<20), maxFrame/2))
	asked.IsolationLevel = 1                   // committed
	asked.MinBytes, asked.SessionEpoch = 0, -1 // wait for nothing, and no session
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = request.Partition, request.Offset, asked.MaxBytes
	topic.Topic, topic.Partitions = request.Topic, append(topic.Partitions, partition)
	asked.Topics = append(asked.Topics, topic)
	answer := kmsg.NewPtrFetchResponse()
	if err = c.ask(ctx, leader, asked, answer); err == nil {
		result, err = readFetched(answer, &request)
	}
	c.doubtLeader(request.Topic, request.Partition, leader, err)
	return result, err
}

// readFetched reads an answer about one partition.
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
	slices.SortStableFunc(read.AbortedTransactions, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	return *read, nil
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

// Bounds asks the leaders of the first n partitions for the ends of their logs, as readers see them. A request goes to
// each leader twice.
func (c *Cluster) Bounds(ctx context.Context, topic string, n int, committed bool) ([]Bounds, error) {
	readers := kmsg.NewListOffsetsRequest()
	if committed {
		readers.IsolationLevel = 1
	}
	first, err := c.offsets(ctx, topic, n, readers, earliest)
	if err != nil {
		return nil, err
	}
	end, err := c.offsets(ctx, topic, n, readers, latest)
	bounds := make([]Bounds, len(end))
	for i := range bounds {
		bounds[i] = Bounds{First: first[i], End: end[i]}
	}
	return bounds, err
}

// LogEnds asks the leaders of the first n partitions where their own logs end: also after what is not replicated yet,
// and so is not in the Bounds.
func (c *Cluster) LogEnds(ctx context.Context, topic string, n int) ([]int64, error) {
	debugger := kmsg.NewListOffsetsRequest()
	debugger.ReplicaID = -2 // ListOffsetsRequest.DEBUGGING_REPLICA_ID
	return c.offsets(ctx, topic, n, debugger, latest)
}

// offsets asks each leader once, in such a request; Kafka refuses a partition that is named twice.
func (c *Cluster) offsets(ctx context.Context, topic string, n int, like kmsg.ListOffsetsRequest, time int64) ([]int64, error) {
	byLeader := map[int32]*kmsg.ListOffsetsRequest{}
	for number := range int32(n) {
		leader, err := c.leader(ctx, topic, number)
		if err != nil {
			return nil, err
		}
		if byLeader[leader] == nil {
			request := like
			request.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic}}
			byLeader[leader] = &request
		}
		to := &byLeader[leader].Topics[0]
		to.Partitions = append(to.Partitions, kmsg.ListOffsetsRequestTopicPartition{Partition: number, CurrentLeaderEpoch: -1, Timestamp: time})
	}
	found := map[int32]int64{}
	for leader, request := range byLeader {
		number := request.Topics[0].Partitions[0].Partition
		answer := kmsg.NewPtrListOffsetsResponse()
		err := c.ask(ctx, leader, request, answer)
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				found[p.Partition] = p.Offset
				if err == nil && p.ErrorCode != 0 {
					number, err = p.Partition, &Error{Code: p.ErrorCode, Needs: "DESCRIBE on topic " + topic,
						Request: fmt.Sprintf("find the ends of topic %s partition %d", topic, p.Partition)}
				}
			}
		}
		if err != nil {
			c.doubtLeader(topic, number, leader, err)
			return nil, err
		}
	}
	all := make([]int64, n)
	for i := range all {
		offset, there := found[int32(i)]
		if !there {
			return nil, fmt.Errorf("find the ends of topic %s: the answer has no partition %d", topic, i)
		}
		all[i] = offset
	}
	return all, nil
}
