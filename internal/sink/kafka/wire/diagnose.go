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
)

// diagnose looks closer at a connection that was cut without a word, which is how brokers answer to the wrong security,
// and how they die. Only what a broker then proves becomes Fatal.
func (c *Cluster) diagnose(ctx context.Context, err error) error {
	bounded, done, closed := c.begin(ctx, c.options.Timeout)
	if closed != nil {
		return closed
	}
	defer done()
	var connect *ConnectError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &connect) && connect.Cause == cutHandshake:
		return c.diagnoseTLS(bounded, connect)
	case errors.As(err, &connect) && connect.Cause == silent:
		return c.diagnoseSilence(bounded, connect)
	case connect != nil, isTimeout(err):
		return err
	case Code(err) == codeUnsupportedSASLMechanism:
		return c.nameMechanisms(bounded, err)
	case Code(err) == 0 && c.options.SASL == nil:
		return c.diagnoseNoLogin(bounded, err)
	}
	return err
}

// diagnoseTLS asks without TLS whether it is Kafka that cut the handshake: a plaintext listener takes it for a size
// that is too large.
func (c *Cluster) diagnoseTLS(ctx context.Context, connect *ConnectError) error {
	if _, err := c.probe(ctx, connect.Address, nil); err != nil {
		return connect
	}
	return &ConnectError{Address: connect.Address, Class: Fatal, Err: connect.Err, Cause: "the listener has no TLS",
		Remedy: "remove kafka.tls, or use the port of a TLS listener in kafka.brokers"}
}

// diagnoseSilence asks in the language of the most likely other server, which waits for the end of a line. A Kafka
// broker takes it for a size that is too large.
func (c *Cluster) diagnoseSilence(ctx context.Context, connect *ConnectError) error {
	conn, err := c.dialer.open(ctx, "tcp", connect.Address, c.options.TLS)
	if err != nil {
		return connect
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return connect
	}
	_, err = conn.Read(make([]byte, 1))
	if foreign := new(ConnectError); errors.As(err, &foreign) && foreign.Cause == speaksHTTP {
		return foreign
	}
	return connect
}

// diagnoseNoLogin asks for a login where none is configured: a listener without SASL says so (34), one with SASL names
// what it has.
func (c *Cluster) diagnoseNoLogin(ctx context.Context, cut error) error {
	for _, broker := range c.options.Brokers {
		answer, err := c.probe(ctx, broker, c.options.TLS)
		if err != nil || answer.ErrorCode == codeIllegalSASLState || len(answer.Mechanisms) == 0 {
			continue
		}
		return &ConnectError{Address: broker, Class: Fatal, Err: cut,
			Cause:  fmt.Sprintf("the listener wants a login with %s, and none is configured", offered(answer)),
			Remedy: "set kafka.sasl, or use the port of a listener without SASL in kafka.brokers"}
	}
	return cut
}

// nameMechanisms adds to the refusal of a mechanism which ones there are.
func (c *Cluster) nameMechanisms(ctx context.Context, refusal error) error {
	var named *Error
	if !errors.As(refusal, &named) {
		return refusal
	}
	for _, broker := range c.options.Brokers {
		if answer, err := c.probe(ctx, broker, c.options.TLS); err == nil && len(answer.Mechanisms) > 0 {
			better := *named
			better.Message = "it has " + offered(answer)
			return &better
		}
	}
	return refusal
}

func offered(answer *saslhandshake.Response) string {
	slices.Sort(answer.Mechanisms)
	return strings.Join(answer.Mechanisms, ", ")
}

// probe makes a connection of its own and begins a login on it.
func (c *Cluster) probe(ctx context.Context, address string, security *TLS) (*saslhandshake.Response, error) {
	conn, err := c.dialer.open(ctx, "tcp", address, security)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := protocol.NewConn(conn, c.options.ClientID)
	if _, err := client.RoundTrip(new(apiversions.Request)); err != nil {
		return nil, err
	}
	client.SetVersions(map[protocol.ApiKey]int16{protocol.SaslHandshake: 1})
	answer, err := client.RoundTrip(&saslhandshake.Request{Mechanism: Plain})
	if err != nil {
		return nil, err
	}
	typed, fits := answer.(*saslhandshake.Response)
	if !fits {
		return nil, fmt.Errorf("the answer is a %T", answer)
	}
	return typed, nil
}
