package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// anyBroker is the destination of requests that every broker answers.
const anyBroker int32 = -1

var (
	errNoBrokers     = errors.New("no broker has been reached yet")
	errUnknownBroker = errors.New("the broker is not in the list of brokers yet")
)

// exchange is one request and its answer on a connection of the transport. It chooses the broker itself, where
// the transport would look leaders up in a cache that nothing but time renews.
type exchange struct {
	api     protocol.ApiKey
	broker  int32
	version int16 // the newest that the broker and kafka-go have in common
	known   bool  // to the broker
	talk    func(rw io.ReadWriter, version int16) (protocol.Message, error)
}

func (e *exchange) ApiKey() protocol.ApiKey { return e.api }

// Broker implements protocol.BrokerMessage.
func (e *exchange) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	if len(cluster.Brokers) == 0 {
		return protocol.Broker{}, errNoBrokers
	}
	if e.broker == anyBroker {
		return protocol.Broker{ID: anyBroker}, nil
	}
	broker, known := cluster.Brokers[e.broker]
	if !known {
		return protocol.Broker{}, fmt.Errorf("broker %d: %w", e.broker, errUnknownBroker)
	}
	return broker, nil
}

// Required implements protocol.RawExchanger.
func (e *exchange) Required(versions map[protocol.ApiKey]int16) bool {
	e.version, e.known = versions[e.api]
	return true
}

// RawExchange implements protocol.RawExchanger.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !e.known {
		return nil, &Error{Code: codeUnsupportedVersion, Request: "send " + e.api.String(), Message: "the broker does not know this request"}
	}
	answer, err := e.talk(rw, e.version)
	if err != nil {
		return nil, err
	}
	return &reply{e.api, answer}, nil
}

// reply hides an answer from the transport, which looks into some of those that it knows: it would wait until a topic
// that was created comes up in its own list, which has none.
type reply struct {
	api    protocol.ApiKey
	answer protocol.Message
}

func (r *reply) ApiKey() protocol.ApiKey { return r.api }

// ask sends a request that kafka-go can write, and reads its answer with kafka-go.
func ask[Answer protocol.Message](ctx context.Context, c *Cluster, broker int32, request protocol.Message) (Answer, error) {
	var none Answer
	answer, err := c.send(ctx, &exchange{api: request.ApiKey(), broker: broker,
		talk: func(rw io.ReadWriter, version int16) (protocol.Message, error) {
			return protocol.RoundTrip(rw, version, c.serial.Add(1), c.options.ClientID, request)
		}})
	if err != nil {
		return none, err
	}
	typed, fits := answer.(Answer)
	if !fits {
		return none, fmt.Errorf("ask Kafka for %s: the answer is a %T", request.ApiKey(), answer)
	}
	c.throttles.note(broker, throttleOf(answer))
	return typed, nil
}

// send does one exchange. All errors that are not answers of a broker come from here.
func (c *Cluster) send(ctx context.Context, e *exchange) (protocol.Message, error) {
	if err := c.awaitQuota(ctx, e.broker); err != nil {
		return nil, err
	}
	bounded, done, err := c.requests.begin(ctx, c.options.Timeout)
	if err != nil {
		return nil, err
	}
	defer done()
	message, err := c.transport.RoundTrip(bounded, c.address, e)
	if errors.Is(err, errNoBrokers) {
		err = c.whyNoBrokers(bounded)
	}
	if err == nil {
		answer, fits := message.(*reply)
		if !fits {
			return nil, fmt.Errorf("send %s to Kafka: the transport answers with a %T", e.api, message)
		}
		return answer.answer, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.requests.closed():
		return nil, errClosed
	}
	c.broken.Store(true)
	return nil, c.sendError(e, err)
}

// whyNoBrokers is the true error of a transport that has not reached a broker: only its own metadata has it. The next
// request shall connect anew instead of being told the same.
func (c *Cluster) whyNoBrokers(ctx context.Context) error {
	_, err := c.transport.RoundTrip(ctx, c.address, &metadata.Request{TopicNames: []string{}})
	c.broken.Store(true)
	c.Refresh()
	if err == nil {
		err = errNoBrokers
	}
	return err
}

// sendError says what a failed exchange was about.
func (c *Cluster) sendError(e *exchange, err error) error {
	if answer := loginError(c.options.SASL, err); answer != nil {
		return answer
	}
	var connect *ConnectError
	var refused *Error
	var login *loginFailure
	switch {
	case errors.As(err, &connect):
		return connect
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &login):
		return login
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("send %s to Kafka: no answer within %s: %w", e.api, c.options.Timeout, err)
	}
	return fmt.Errorf("send %s to Kafka: %w", e.api, err)
}
