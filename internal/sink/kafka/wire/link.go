package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

const (
	// brokersTTL is how old the transport's list of brokers gets, and the limit for asking. Leaders are not in it: this
	// package asks for them when it needs to.
	brokersTTL = 2 * time.Second

	// idleTimeout is how long a connection may be unused: less than load balancers allow, so that it is not cut when it
	// is needed.
	idleTimeout = 3 * time.Minute

	// refreshPause is between two times that Refresh closes connections.
	refreshPause = 250 * time.Millisecond
)

// link is the connections to the brokers of one cluster. It sends a request to a broker that its caller chooses, and
// knows nothing of topics.
type link struct {
	options   Options
	address   net.Addr // of all bootstrap brokers
	dialer    *dialer
	transport *kafka.Transport
	throttles throttles
	requests  requests
	serial    atomic.Int32 // correlation ids
	renewed   func()       // told when what was learned on older connections may be wrong

	broken    atomic.Bool // a connection failed since connections were closed
	refreshed atomic.Int64
}

// newLink returns a link that has not connected yet. The options are complete.
func newLink(options Options, login *saslLogin) *link {
	d := &dialer{options: &options, conns: map[*guarded]struct{}{}}
	l := &link{
		options: options,
		address: kafka.TCP(options.Brokers...),
		dialer:  d,
		transport: &kafka.Transport{
			Dial:        d.dial,
			DialTimeout: options.connectTimeout(),
			IdleTimeout: idleTimeout,
			MetadataTTL: brokersTTL,
			// Not nil, which is all topics. None: the brokers come with any answer, and leaders are asked for by this
			// package.
			MetadataTopics: []string{},
			ClientID:       options.ClientID,
		},
		requests: requests{running: map[*context.CancelFunc]struct{}{}},
	}
	if login != nil { // a nil *saslLogin would be a Mechanism
		l.transport.SASL = login
	}
	return l
}

// close ends all requests and connections. No goroutine is left when it returns.
func (l *link) close() {
	l.requests.close()
	l.transport.CloseIdleConnections()
	l.dialer.close()
}

// refresh has what was learned forgotten and, where a connection broke, closes all connections that nobody is using.
// Many calls in a short time are one.
func (l *link) refresh() {
	last, now := l.refreshed.Load(), time.Now().UnixNano()
	if now-last < int64(refreshPause) || !l.refreshed.CompareAndSwap(last, now) {
		return
	}
	l.renewed()
	if l.broken.Swap(false) {
		l.transport.CloseIdleConnections()
	}
}

// ask sends a request that kafka-go can write, and reads its answer with kafka-go.
func ask[Answer protocol.Message](ctx context.Context, l *link, broker int32, request protocol.Message) (Answer, error) {
	var none Answer
	answer, err := l.send(ctx, &exchange{api: request.ApiKey(), broker: broker,
		talk: func(rw io.ReadWriter, version int16) (protocol.Message, error) {
			return protocol.RoundTrip(rw, version, l.serial.Add(1), l.options.ClientID, request)
		}})
	if err != nil {
		return none, err
	}
	typed, fits := answer.(Answer)
	if !fits {
		return none, fmt.Errorf("ask Kafka for %s: the answer is a %T", request.ApiKey(), answer)
	}
	l.throttles.note(broker, throttleOf(answer))
	return typed, nil
}

// send does one exchange. All errors that are not answers of a broker come from here.
func (l *link) send(ctx context.Context, e *exchange) (protocol.Message, error) {
	if err := l.awaitQuota(ctx, e.broker); err != nil {
		return nil, err
	}
	bounded, done, err := l.requests.begin(ctx, l.options.Timeout)
	if err != nil {
		return nil, err
	}
	defer done()
	message, err := l.transport.RoundTrip(bounded, l.address, e)
	if errors.Is(err, errNoBrokers) {
		err = l.whyNoBrokers(bounded)
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
	case l.requests.closed():
		return nil, errClosed
	}
	l.broken.Store(true)
	return nil, l.sendError(e, err)
}

// whyNoBrokers is the true error of a transport that has not reached a broker: only its own metadata has it. The next
// request shall connect anew instead of being told the same.
func (l *link) whyNoBrokers(ctx context.Context) error {
	_, err := l.transport.RoundTrip(ctx, l.address, &metadata.Request{TopicNames: []string{}})
	l.broken.Store(true)
	l.refresh()
	if err == nil {
		err = errNoBrokers
	}
	return err
}

// sendError says what a failed exchange was about.
func (l *link) sendError(e *exchange, err error) error {
	if answer := loginError(l.options.SASL, err); answer != nil {
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
		return fmt.Errorf("send %s to Kafka: no answer within %s: %w", e.api, l.options.Timeout, err)
	}
	return fmt.Errorf("send %s to Kafka: %w", e.api, err)
}

// awaitQuota waits until the broker reads again. The time does not count as that of the request.
func (l *link) awaitQuota(ctx context.Context, broker int32) error {
	for {
		left := l.throttles.left(broker)
		if left <= 0 {
			return nil
		}
		if l.options.Throttled != nil {
			l.options.Throttled(left)
		}
		waiting, done, err := l.requests.begin(ctx, left)
		if err != nil {
			return err
		}
		<-waiting.Done()
		done()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if l.requests.closed() {
			return errClosed
		}
	}
}
