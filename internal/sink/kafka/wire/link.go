package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kmsg"
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
		talk: func(rw io.ReadWriter, version int16) (any, error) {
			return protocol.RoundTrip(rw, version, l.serial.Add(1), l.options.ClientID, request)
		}})
	if err != nil {
		return none, err
	}
	typed, fits := answer.(Answer)
	if !fits {
		return none, fmt.Errorf("ask Kafka for %s: the answer is a %T", request.ApiKey(), answer)
	}
	return typed, nil
}

// send does one exchange. All errors that are not answers of a broker come from here.
func (l *link) send(ctx context.Context, e *exchange) (any, error) {
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
		l.throttles.note(e.broker, throttleOf(answer.answer))
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
	talk    func(rw io.ReadWriter, version int16) (any, error)
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
	answer any
}

func (r *reply) ApiKey() protocol.ApiKey { return r.api }

// write writes a request as kmsg encodes it.
func (l *link) write(w io.Writer, request kmsg.Request) (serial int32, err error) {
	serial = l.serial.Add(1)
	_, err = w.Write(l.format(request, serial))
	return serial, err
}

func (l *link) format(request kmsg.Request, serial int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(l.options.ClientID)).AppendRequest(nil, request, serial)
}

// askFlexible sends a request of a flexible version (KIP-482) that kafka-go does not know. Where the broker does not
// know it either, that is an *Error with code 35.
func askFlexible[Answer kmsg.Response](ctx context.Context, l *link, broker int32, request kmsg.Request) (Answer, error) {
	var none Answer
	answer, err := l.send(ctx, &exchange{api: protocol.ApiKey(request.Key()), broker: broker,
		talk: func(rw io.ReadWriter, _ int16) (any, error) { return l.talkFlexible(rw, request) }})
	if err != nil {
		return none, err
	}
	typed, fits := answer.(Answer)
	if !fits {
		return none, &Error{Code: codeUnsupportedVersion, Request: "send " + kmsg.NameForKey(request.Key()), Message: "the broker does not know this request"}
	}
	return typed, nil
}

// talkFlexible returns the answer to ApiVersions where the broker does not know the request.
func (l *link) talkFlexible(rw io.ReadWriter, request kmsg.Request) (kmsg.Response, error) {
	serial, err := l.write(rw, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return nil, err
	}
	versions, err := readAnswer(rw, serial, kmsg.NewPtrApiVersionsResponse())
	if err != nil || !knows(versions, request) {
		return versions, err
	}
	if serial, err = l.write(rw, request); err != nil {
		return nil, err
	}
	return readAnswer(rw, serial, request.ResponseKind())
}

func knows(versions *kmsg.ApiVersionsResponse, request kmsg.Request) bool {
	return slices.ContainsFunc(versions.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool {
		return k.ApiKey == request.Key() && k.MaxVersion >= request.GetVersion()
	})
}

// throttles are until when brokers read nothing from this client, because it has used up a quota (KIP-219). A broker
// says so in an answer, and leaves the connection unread for that time. A request that is sent all the same lies there,
// also when the process that sent it is dead, and is done long after requests of its successor. So nothing is sent
// meanwhile, on none of the connections to the broker.
type throttles struct {
	any atomic.Bool // false is that no broker has ever asked to wait

	mu    sync.Mutex
	until map[int32]time.Time // by broker
}

// note keeps what an answer asks for.
func (t *throttles) note(broker, millis int32) {
	if millis <= 0 {
		return
	}
	until := time.Now().Add(time.Duration(millis) * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil {
		t.until = map[int32]time.Time{}
	}
	if t.until[broker].Before(until) {
		t.until[broker] = until
	}
	t.any.Store(true)
}

func (t *throttles) left(broker int32) time.Duration {
	if !t.any.Load() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until[broker])
}

// throttleOf is how long an answer asks to wait, in milliseconds.
func throttleOf(answer any) int32 {
	if own, ok := answer.(kmsg.ThrottleResponse); ok {
		millis, _ := own.Throttle()
		return millis
	}
	if millis := reflect.Indirect(reflect.ValueOf(answer)).FieldByName("ThrottleTimeMs"); millis.IsValid() {
		return int32(millis.Int()) // kafka-go's
	}
	return 0
}
