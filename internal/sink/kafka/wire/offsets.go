package wire

import (
	"context"
	"fmt"
	"maps"

	"github.com/segmentio/kafka-go/protocol/listoffsets"
)

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
