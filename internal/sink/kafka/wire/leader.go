package wire

import (
	"context"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// partition names one log.
type partition struct {
	topic  string
	number int32
}

// led is the answer of a leader.
type led struct {
	message protocol.Message
	asked   asked
}

// asked is who was asked as the leader of a partition.
type asked struct {
	partition
	leader int32
}

// askLeader does one exchange with the leader of a partition.
func (c *Cluster) askLeader(ctx context.Context, api protocol.ApiKey, of partition, talk func(io.ReadWriter, int16) (protocol.Message, error)) (led, error) {
	leader, err := c.leader(ctx, of.topic, of.number)
	if err != nil {
		return led{}, err
	}
	who := asked{of, leader}
	message, err := c.send(ctx, &exchange{api: api, broker: leader, talk: talk})
	c.doubtLeader(who, err)
	return led{message, who}, err
}

// doubtLeader forgets who leads a partition after an error that may come from somebody else leading it.
func (c *Cluster) doubtLeader(who asked, err error) {
	if err == nil {
		return
	}
	switch Code(err) {
	case 0, codeUnknownTopic, codeLeaderNotAvailable, codeNotLeader, codeBrokerNotAvailable, codeReplicaNotAvailable,
		codeStorageError, codeListenerNotFound, codeFencedLeaderEpoch, codeUnknownLeaderEpoch:
		c.leaders.forget(who.topic, who.number, who.leader)
	}
}
