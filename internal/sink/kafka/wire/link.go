package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
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
	transport *kafka.Transport
	serial    atomic.Int32   // correlation ids
	rooms     sync.Pool      // *[]byte, for requests of kmsg
	busy      sync.WaitGroup // requests under way, and connections that the transport has not closed

	mu        sync.Mutex // guards the following
	closed    bool
	running   map[*context.CancelFunc]struct{} // requests under way
	conns     map[*guarded]struct{}
	broken    bool                // a connection failed since connections were closed
	refreshed time.Time           // when Refresh has closed some
	throttled map[int32]time.Time // by broker: see awaitQuota
}

// newLink returns a link that has not connected yet. The options are complete.
func newLink(options Options) *link {
	l := &link{options: options, running: map[*context.CancelFunc]struct{}{}, conns: map[*guarded]struct{}{}, throttled: map[int32]time.Time{}}
	l.transport = &kafka.Transport{
		Dial:        l.open,
		DialTimeout: options.connectTimeout(),
		IdleTimeout: idleTimeout,
		MetadataTTL: brokersTTL,
		// Not nil, which is all topics. None: the brokers come with any answer, and leaders are asked for by this
		// package.
		MetadataTopics: []string{},
		ClientID:       clientID,
		SASL:           newLogin(options.SASL),
	}
	return l
}

// errClosed is what requests of a closed Cluster return.
var errClosed = errors.New("the connection to Kafka is closed")

// Close closes all connections. Requests under way fail. No goroutine is left when it returns.
func (l *link) Close() {
	l.mu.Lock()
	l.closed = true
	conns, running := slices.Collect(maps.Keys(l.conns)), slices.Collect(maps.Keys(l.running))
	l.mu.Unlock()
	for _, cancel := range running {
		(*cancel)()
	}
	for _, conn := range conns {
		_ = conn.raw.Close() // not TLS's, which would say goodbye first; the transport closes it again
	}
	l.transport.CloseIdleConnections()
	l.busy.Wait()
}

// begin bounds a request, and makes Close end it and wait for it.
func (l *link) begin(ctx context.Context, timeout time.Duration) (bounded context.Context, done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errClosed
	}
	l.busy.Add(1)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	l.running[&cancel] = struct{}{}
	return bounded, func() {
		cancel()
		l.mu.Lock()
		delete(l.running, &cancel)
		l.mu.Unlock()
		l.busy.Done()
	}, nil
}

func (l *link) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Refresh closes all connections that nobody is using, where one broke. It is for the time between an attempt that
// failed and the next; many calls in a short time are one.
func (l *link) Refresh() {
	l.mu.Lock()
	due := l.broken && time.Since(l.refreshed) >= refreshPause
	if due {
		l.broken, l.refreshed = false, time.Now()
	}
	l.mu.Unlock()
	if due {
		l.transport.CloseIdleConnections()
	}
}

// breaks notes that a connection failed.
func (l *link) breaks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
}

// open makes a connection that is ready for Kafka's protocol: encrypted where the options say so, and guarded.
func (l *link) open(ctx context.Context, network, address string) (net.Conn, error) {
	patience := connectTimeout
	if len(l.options.Brokers) > 1 {
		patience /= 2 // the transport tries all that it has within one limit
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	raw, err := l.options.Dial(ctx, network, address)
	if err != nil {
		return nil, connectError(address, err)
	}
	conn := &guarded{Conn: raw, raw: raw, address: address, link: l}
	if l.options.TLS != nil {
		if conn.Conn, err = handshake(ctx, l.options.TLS, raw, address); err != nil {
			_ = raw.Close() // the handshake's error is the one to tell of
			return nil, err
		}
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.conns[conn] = struct{}{}
		l.busy.Add(1)
	}
	l.mu.Unlock()
	if closed {
		_ = raw.Close() // nobody has used it
		return nil, errClosed
	}
	return conn, nil
}

// roundTrip writes a request and reads its answer.
func (l *link) roundTrip(rw io.ReadWriter, request kmsg.Request, answer kmsg.Response) error {
	serial := l.serial.Add(1)
	room, had := l.rooms.Get().(*[]byte)
	if !had {
		room = new([]byte)
	}
	*room = kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest((*room)[:0], request, serial)
	_, err := rw.Write(*room)
	l.rooms.Put(room)
	if err != nil {
		return err
	}
	return readAnswer(rw, serial, answer)
}

// maxFrame bounds an answer in bytes: more than any batch that a broker takes (socket.request.max.bytes is 100 MiB).
const maxFrame = 256 << 20

// readAnswer reads the answer to the request with a correlation id.
func readAnswer(r io.Reader, serial int32, answer kmsg.Response) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 4 || size > maxFrame {
		return fmt.Errorf("the answer has %d bytes", size)
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != serial {
		return fmt.Errorf("the answer is to request %d and not to %d", got, serial)
	}
	body := kbin.Reader{Src: make([]byte, size-4)}
	if _, err := io.ReadFull(r, body.Src); err != nil {
		return err
	}
	if answer.IsFlexible() {
		kmsg.SkipTags(&body) // of the header
	}
	if err := answer.ReadFrom(body.Src); err != nil {
		return fmt.Errorf("the answer is shorter than its contents: %w", err)
	}
	return nil
}

// ask sends a request, and reads its answer into the given one. The request goes in the version that it is of, or in
// the newest before it that the broker has; one of version 0 in the newest that kafka-go knows, too. All errors that
// are not answers of a broker come from here.
func (l *link) ask(ctx context.Context, broker int32, request kmsg.Request, answer kmsg.Response) error {
	e := &exchange{link: l, broker: broker, api: protocol.ApiKey(request.Key()), request: request, answer: answer}
	e.wanted = cmp.Or(request.GetVersion(), e.api.MaxVersion())
	if err := l.awaitQuota(ctx, broker); err != nil {
		return err
	}
	bounded, done, err := l.begin(ctx, l.options.Timeout)
	if err != nil {
		return err
	}
	defer done()
	address := kafka.TCP(l.options.Brokers...)
	_, err = l.transport.RoundTrip(bounded, address, e)
	if errors.Is(err, errNoBrokers) {
		// Only the transport's own request has the true error. The next one shall connect anew instead of being told
		// the same.
		if _, why := l.transport.RoundTrip(bounded, address, &metadata.Request{TopicNames: []string{}}); why != nil {
			err = why
		}
		l.breaks()
		l.Refresh()
	}
	switch {
	case err == nil:
		l.noteQuota(broker, answer)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case l.isClosed():
		return errClosed
	}
	l.breaks()
	return l.sendError(e.api, err)
}

// sendError says what a failed exchange was about.
func (l *link) sendError(api protocol.ApiKey, err error) error {
	if answer := loginError(l.options.SASL, err); answer != nil {
		return answer
	}
	switch refused, connect := errorsIn(err); {
	case connect != nil:
		return connect
	case refused != nil:
		return refused
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("send %s to Kafka: no answer within %s: %w", api, l.options.Timeout, err)
	case l.options.SASL == nil && errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("send %s to Kafka: %w: if that lasts, the listener may want a login: set kafka.sasl", api, err)
	}
	return fmt.Errorf("send %s to Kafka: %w", api, err)
}

// noteQuota keeps until when the broker reads nothing from this client, because it has used up a quota (KIP-219). The
// broker says so in an answer, and leaves the connection unread for that time. A request that is sent all the same lies
// there, also when the process that sent it is dead, and is done long after requests of its successor. So nothing is
// sent meanwhile, on none of the connections to the broker.
func (l *link) noteQuota(broker int32, answer kmsg.Response) {
	asks, ever := answer.(kmsg.ThrottleResponse)
	if !ever {
		return
	}
	if millis, _ := asks.Throttle(); millis > 0 {
		until := time.Now().Add(time.Duration(millis) * time.Millisecond)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.throttled[broker].Before(until) {
			l.throttled[broker] = until
		}
	}
}

// awaitQuota waits until the broker reads again. The time does not count as that of the request.
func (l *link) awaitQuota(ctx context.Context, broker int32) error {
	for {
		l.mu.Lock()
		left := time.Until(l.throttled[broker])
		l.mu.Unlock()
		if left <= 0 {
			return nil
		}
		l.options.Throttled(left)
		waiting, done, err := l.begin(ctx, left)
		if err != nil {
			return err
		}
		<-waiting.Done()
		done()
		if ctx.Err() != nil {
			return ctx.Err()
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
	link    *link
	broker  int32
	api     protocol.ApiKey
	request kmsg.Request
	wanted  int16 // version
	answer  kmsg.Response
	version int16 // the newest that the broker and kafka-go have in common
	known   bool  // to the broker
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

// RawExchange implements protocol.RawExchanger. It keeps the answer from the transport, which looks into some of those
// that it knows: it would wait until a topic that was created comes up in its own list, which has none.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !e.known {
		return nil, &Error{Code: kerr.UnsupportedVersion.Code, Request: "send " + e.api.String(), Message: "the broker does not know this request"}
	}
	version := e.version
	if version == e.api.MaxVersion() && version < e.wanted { // the newest that kafka-go knows
		versions := kmsg.NewPtrApiVersionsResponse()
		if err := e.link.roundTrip(rw, kmsg.NewPtrApiVersionsRequest(), versions); err != nil {
			return e, err
		}
		for _, k := range versions.ApiKeys {
			if k.ApiKey == e.request.Key() {
				version = k.MaxVersion
			}
		}
	}
	e.request.SetVersion(min(version, e.wanted))
	e.answer.SetVersion(e.request.GetVersion())
	return e, e.link.roundTrip(rw, e.request, e.answer)
}

// textOf is the text, which brokers may leave out.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// maxFirstFrame is far above the size of the first answer on a connection in bytes, the list of a broker's requests,
// and far below what the first bytes of other protocols mean as a length.
const maxFirstFrame = 64 << 10

// guarded is a connection on which nothing is believed before the other side has proven that it is a Kafka broker.
// kafka-go takes any four bytes for a length and any four for a count, and makes room for it: an HTTP server's answer
// would cost gigabytes.
type guarded struct {
	net.Conn
	raw     net.Conn // below TLS
	address string
	link    *link

	contents io.Reader // with the first frame; nil before it is proven
	failed   error     // of a read, or of the proof
	bounded  bool      // the transport has set a deadline
}

// Read proves the first frame before it hands it out. Without a deadline, as kafka-go logs in, it waits for
// connectTimeout. An error is for good: kafka-go reads on after one.
func (g *guarded) Read(p []byte) (n int, err error) {
	if g.failed == nil {
		g.failed = g.bound()
	}
	if g.failed == nil && g.contents == nil {
		if g.failed = g.prove(); g.failed != nil {
			g.failed = connectError(g.address, g.failed)
		}
	}
	if g.failed == nil {
		n, g.failed = g.contents.Read(p)
		return n, g.failed
	}
	return 0, g.failed
}

func (g *guarded) Write(p []byte) (int, error) {
	if err := g.bound(); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

func (g *guarded) bound() error {
	if g.bounded {
		return nil
	}
	return g.Conn.SetDeadline(time.Now().Add(connectTimeout))
}

// SetDeadline is called by whoever reads and writes, not at the same time.
func (g *guarded) SetDeadline(t time.Time) error {
	g.bounded = !t.IsZero()
	return g.Conn.SetDeadline(t)
}

// Close is called by the transport, once or more.
func (g *guarded) Close() error {
	g.link.mu.Lock()
	if _, open := g.link.conns[g]; open {
		delete(g.link.conns, g)
		g.link.busy.Done()
	}
	g.link.mu.Unlock()
	return g.Conn.Close()
}

// prove reads the first frame whole. It must be the answer to ApiVersions version 0, which is what kafka-go asks first:
// size, correlation id 1, error code, and a count that fits the size.
func (g *guarded) prove() error {
	const header, entry = 4 + 2 + 4, 6
	frame := make([]byte, 4)
	if _, err := io.ReadFull(g.Conn, frame); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(frame)
	if size >= header && size <= maxFirstFrame {
		frame = append(frame, make([]byte, size)...)
		if _, err := io.ReadFull(g.Conn, frame[4:]); err != nil {
			return err
		}
		if binary.BigEndian.Uint32(frame[4:]) == 1 && uint64(binary.BigEndian.Uint32(frame[10:]))*entry <= uint64(size-header) {
			g.contents = io.MultiReader(bytes.NewReader(frame), g.Conn)
			return nil
		}
	}
	return fmt.Errorf("%w: its answer begins with %.40q", errNotKafka, frame)
}
