package wire

import (
	"context"

	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	"github.com/segmentio/kafka-go/protocol/offsetcommit"
	"github.com/segmentio/kafka-go/protocol/offsetfetch"
)

// GroupOffset is how far a group of consumers has read a partition, as the brokers keep it.
type GroupOffset struct {
	Offset int64  // of the next record to be read
	Note   string // that was committed with it
}

// codeNoGroup is GROUP_ID_NOT_FOUND: nobody has read anything as the group (KIP-848 tells that apart).
const codeNoGroup = 69

// groupCoordinator is the broker that keeps the offsets of a group. It is asked for each time: offsets are seldom
// committed here.
func (c *Cluster) groupCoordinator(ctx context.Context, group string) (int32, error) {
	answer, err := ask[*findcoordinator.Response](ctx, c.link, anyBroker, &findcoordinator.Request{Key: group, KeyType: 0})
	if err != nil {
		return 0, err
	}
	if answer.ErrorCode != 0 {
		return 0, &Error{Code: answer.ErrorCode, Message: answer.ErrorMessage, Request: "find the coordinator of group " + group, Needs: readOn(group)}
	}
	return answer.NodeID, nil
}

func readOn(group string) string { return "READ on group " + group }

// CommitOffsets notes how far a group without members has read the topic, by partition.
func (c *Cluster) CommitOffsets(ctx context.Context, group, topic string, offsets map[int32]GroupOffset) error {
	broker, err := c.groupCoordinator(ctx, group)
	if err != nil {
		return err
	}
	request := &offsetcommit.Request{GroupID: group, GenerationID: -1, RetentionTimeMs: -1, Topics: []offsetcommit.RequestTopic{{Name: topic}}}
	for number, o := range offsets {
		request.Topics[0].Partitions = append(request.Topics[0].Partitions, offsetcommit.RequestPartition{
			PartitionIndex: number, CommittedOffset: o.Offset, CommitTimestamp: -1, CommittedLeaderEpoch: -1, CommittedMetadata: o.Note,
		})
	}
	answer, err := ask[*offsetcommit.Response](ctx, c.link, broker, request)
	if err != nil {
		return err
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return &Error{Code: p.ErrorCode, Request: "commit offsets of group " + group, Needs: readOn(group)}
			}
		}
	}
	return nil
}

// GroupOffsets are how far the group has read the partitions of the topic; those that it has not read are left out.
func (c *Cluster) GroupOffsets(ctx context.Context, group, topic string, partitions []int32) (map[int32]GroupOffset, error) {
	broker, err := c.groupCoordinator(ctx, group)
	if err != nil {
		return nil, err
	}
	answer, err := ask[*offsetfetch.Response](ctx, c.link, broker, &offsetfetch.Request{
		GroupID: group, Topics: []offsetfetch.RequestTopic{{Name: topic, PartitionIndexes: partitions}},
	})
	if err != nil {
		return nil, err
	}
	failure := &Error{Code: answer.ErrorCode, Request: "read the offsets of group " + group, Needs: readOn(group)}
	found := map[int32]GroupOffset{}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				failure.Code = p.ErrorCode
			}
			if p.CommittedOffset >= 0 {
				found[p.PartitionIndex] = GroupOffset{p.CommittedOffset, p.Metadata}
			}
		}
	}
	switch failure.Code {
	case 0, codeNoGroup:
		return found, nil
	}
	return nil, failure
}
