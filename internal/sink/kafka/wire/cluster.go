package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Reach connects, logs in and asks for the brokers. Its error is that of the connection: what keeps the client from
// talking to this cluster, and the setting to change. It returns within twice Options.Timeout.
func (c *Cluster) Reach(ctx context.Context) error {
	answer := kmsg.NewPtrMetadataResponse()
	if err := c.ask(ctx, anyBroker, aboutTopics([]string{}), answer); err != nil {
		if ctx.Err() != nil {
			return err
		}
		bounded, done, closed := c.requests.begin(ctx, c.options.Timeout)
		if closed != nil {
			return closed
		}
		defer done()
		return c.dialer.diagnose(bounded, err)
	}
	if len(answer.Brokers) == 0 {
		return fmt.Errorf("connect to %s: the broker does not know any brokers yet", strings.Join(c.options.Brokers, ","))
	}
	return nil
}

// Partitions is how many each of the topics has, of which nil is all but the brokers' own. Those that nobody knows, or
// that the user must not see, are left out.
func (c *Cluster) Partitions(ctx context.Context, names []string) (map[string]int, error) {
	answer := kmsg.NewPtrMetadataResponse()
	if err := c.ask(ctx, anyBroker, aboutTopics(names), answer); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, topic := range answer.Topics {
		if topic.ErrorCode == 0 && !topic.IsInternal {
			counts[textOf(topic.Topic)] = len(topic.Partitions)
		}
	}
	return counts, nil
}

// diagnose looks closer at a connection that was cut without a word, which is how brokers answer to the wrong security,
// and how they die. It is what the error is known as then: only what a broker proves becomes Fatal.
func (d *dialer) diagnose(ctx context.Context, err error) error {
	var connect *ConnectError
	switch {
	case errors.As(err, &connect) && connect.Cause == cutHandshake:
		// A plaintext listener of Kafka's cuts it, since it takes the handshake for a size that is too large.
		if _, err := d.probe(ctx, connect.Address, nil); err != nil {
			return connect
		}
		return &ConnectError{Address: connect.Address, Class: Fatal, Err: connect.Err, Cause: "the listener has no TLS",
			Remedy: "remove kafka.tls, or use the port of a TLS listener in kafka.brokers"}
	case connect != nil, isTimeout(err):
		return err
	}
	named, answered := errors.AsType[*Error](err)
	refused := answered && named.Code == kerr.UnsupportedSaslMechanism.Code
	if !refused && (answered || d.options.SASL != nil) {
		return err
	}
	broker, offered := d.mechanisms(ctx) // a listener without SASL says so (34), one with SASL names what it has
	switch {
	case offered == "":
		return err
	case refused:
		better := *named
		better.Message = "it has " + offered
		return &better
	}
	return &ConnectError{Address: broker, Class: Fatal, Err: err, Cause: fmt.Sprintf("the listener wants a login with %s, and none is configured", offered),
		Remedy: "set kafka.sasl, or use the port of a listener without SASL in kafka.brokers"}
}

// mechanisms are those that the first broker has that names some.
func (d *dialer) mechanisms(ctx context.Context) (broker, offered string) {
	for _, broker := range d.options.Brokers {
		if answer, err := d.probe(ctx, broker, d.options.TLS); err == nil && len(answer.Mechanisms) > 0 {
			return broker, strings.Join(slices.Sorted(slices.Values(answer.Mechanisms)), ", ")
		}
	}
	return "", ""
}

// probe makes a connection of its own and begins a login on it.
func (d *dialer) probe(ctx context.Context, address string, security *TLS) (*saslhandshake.Response, error) {
	conn, err := d.open(ctx, "tcp", address, security)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := protocol.NewConn(conn, clientID)
	if _, err := client.RoundTrip(new(apiversions.Request)); err != nil {
		return nil, err
	}
	client.SetVersions(map[protocol.ApiKey]int16{protocol.SaslHandshake: 1})
	answer, err := client.RoundTrip(&saslhandshake.Request{Mechanism: Plain})
	if err != nil {
		return nil, err
	}
	return answer.(*saslhandshake.Response), nil // to such a request
}
