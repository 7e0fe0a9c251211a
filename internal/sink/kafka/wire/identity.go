package wire

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// identityVersion of Metadata has ids of topics (KIP-516, Kafka 2.8), and what the user may do (KIP-430).
const identityVersion = 10

// Identity is what Kafka says of a topic beyond its name.
type Identity struct {
	ID string // in hex; a topic that is deleted and made again has another one. "" with brokers before 2.8

	// Operations is what the user may do, a bit for each code of AclOperation; unknown where the broker does not say.
	Operations Operations
}

// Identity asks any broker for the identity of a topic. It is an *Error as that of Topic.
func (c *Cluster) Identity(ctx context.Context, topic string) (Identity, error) {
	answer, err := c.send(ctx, &exchange{api: protocol.Metadata, broker: anyBroker,
		talk: func(rw io.ReadWriter, _ int16) (protocol.Message, error) { return c.talkIdentity(rw, topic) }})
	if err != nil {
		return Identity{}, err
	}
	message, _ := answer.(*frame)
	if message.api != protocol.Metadata {
		return Identity{Operations: unknownOperations}, nil // the broker is older
	}
	in := &input{rest: message.body}
	in.tags() // of the header
	c.throttles.note(anyBroker, in.int32())
	return readIdentity(message.body, topic)
}

func (l *link) talkIdentity(rw io.ReadWriter, topic string) (protocol.Message, error) {
	question := output(nil).
		int8(2).int64(0).int64(0). // one topic, without an id
		compact(topic).int8(0).    // no tags
		// do not create it, nothing of the cluster, what the user may do, no tags
		int8(0).int8(0).int8(1).int8(0)
	return l.talkFlexible(rw, protocol.Metadata, identityVersion, question)
}

// readIdentity reads an answer of Metadata, version 10, about one topic.
func readIdentity(body []byte, topic string) (Identity, error) {
	in := &input{rest: body}
	in.tags()  // of the header
	in.int32() // throttle time
	for range in.compactCount() {
		in.int32()
		in.compact()
		in.int32()
		in.compact() // rack
		in.tags()
	}
	in.compact() // cluster id
	in.int32()   // controller
	topics := in.compactCount()
	failure := &Error{Code: in.int16(), Request: "look up topic " + topic, Needs: "DESCRIBE on topic " + topic}
	name := string(in.compact())
	identity := Identity{ID: hex.EncodeToString(in.take(16))}
	in.take(1) // internal
	for range in.compactCount() {
		in.take(2 + 4 + 4 + 4) // error, number, leader and its epoch
		for range 3 {          // replicas, those in sync, those offline
			in.take(4 * in.compactCount())
		}
		in.tags()
	}
	identity.Operations = Operations(in.int32())
	switch {
	case failure.Code != 0:
		return Identity{}, failure
	case in.err != nil:
		return Identity{}, fmt.Errorf("look up topic %s: %w", topic, in.err)
	case topics != 1 || name != topic:
		return Identity{}, fmt.Errorf("look up topic %s: the answer has %d topics, the first is %q", topic, topics, name)
	}
	return identity, nil
}
