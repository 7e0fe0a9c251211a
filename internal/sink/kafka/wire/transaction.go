package wire

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// describeTransactions is a request that kafka-go does not have (KIP-664, Kafka 3.0).
const describeTransactions protocol.ApiKey = 65

// TransactionTimeout asks the coordinator which timeout came with the last InitProducer of the transactional id that
// was answered with a producer. Brokers before 3.0 do not say: code 35.
func (c *Cluster) TransactionTimeout(ctx context.Context, transactionalID string) (time.Duration, error) {
	broker, err := c.coordinator(ctx, transactionalID)
	if err != nil {
		return 0, err
	}
	question := output(nil).int8(2).compact(transactionalID).int8(0) // one id, no tags
	answer, err := c.send(ctx, &exchange{api: describeTransactions, broker: broker,
		talk: func(rw io.ReadWriter, _ int16) (protocol.Message, error) {
			return c.talkFlexible(rw, describeTransactions, 0, question)
		}})
	if err == nil {
		message, _ := answer.(*frame)
		return c.transactionTimeout(broker, transactionalID, message)
	}
	c.doubtCoordinator(transactionalID, err)
	return 0, err
}

func (c *Cluster) transactionTimeout(broker int32, transactionalID string, message *frame) (time.Duration, error) {
	what := "describe the transactions of " + transactionalID
	if message.api != describeTransactions {
		return 0, &Error{Code: codeUnsupportedVersion, Request: what, Message: "the broker does not know this request"}
	}
	throttle, timeout, code, err := readTransaction(message.body)
	c.throttles.note(broker, throttle)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", what, err)
	case code != 0:
		err := &Error{Code: code, Request: what, Needs: "DESCRIBE on transactional id " + transactionalID}
		c.doubtCoordinator(transactionalID, err)
		return 0, err
	}
	return timeout, nil
}

// readTransaction reads an answer of DescribeTransactions, version 0, about one id.
func readTransaction(body []byte) (throttle int32, timeout time.Duration, code int16, err error) {
	in := &input{rest: body}
	in.tags() // of the header
	throttle = in.int32()
	if n := in.compactCount(); n != 1 && in.err == nil {
		return throttle, 0, 0, fmt.Errorf("the answer has %d transactional ids", n)
	}
	code = in.int16()
	in.compact() // the id
	in.compact() // its state
	timeout = time.Duration(in.int32()) * time.Millisecond
	return throttle, timeout, code, in.err
}
