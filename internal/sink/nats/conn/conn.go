package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Options say where and how to connect.
type Options struct {
	URL     string // servers, separated by commas
	Servers string // the URL for error texts
	Name    string // of the client, as the server shows it
	Domain  string // the JetStream domain; "" is that of the server
	Login   Login
	Extra   []natsgo.Option
	Timing  Timing
	Replies int // that may wait to be read
	// Denied is told of a message that the user may not publish, where others choose the subject: the connection goes
	// on without it. nil is that it does not.
	Denied func(error)
}

// Timing is how long the connection has patience.
type Timing struct {
	Reply  time.Duration // without any answer for so long, an attempt has failed
	Outage time.Duration // how often Ready says that there is still no connection
	Dial   time.Duration
	Flush  time.Duration // a socket that takes nothing for so long is dead
	Ping   time.Duration
}

// Inboxes is what the inboxes of all exporters are below. What others make an exporter say never goes there, where it
// would be taken for a server's word.
const Inboxes = "_INBOX.kubecdc"

// Conn is the client library's connection with what the sink needs of it: replies to numbered subjects, and
// word of what happened to it.
type Conn struct {
	NC      *natsgo.Conn
	API     string           // the prefix of the JetStream API's subjects
	Inbox   string           // replies come to this and a number
	Number  uint64           // of the last reply that was asked for
	Replies chan *natsgo.Msg // what Next waits for
	Changed sink.Bell        // the connection came, went or ended since the last look
	Timing

	servers string        // for error texts
	closed  chan struct{} // the library is done with it
	timer   *time.Timer
	fault   atomic.Pointer[error] // the last thing that went wrong with a server

	// life ends when nothing more can come of this connection, for the reason that is its cause. Its sockets end
	// with it, so nothing stays blocked in one.
	life context.Context
	fail context.CancelCauseFunc
}

// Dial connects once.
func Dial(ctx context.Context, options *Options) (*Conn, error) {
	c := &Conn{
		API:     "$JS.API.",
		Replies: make(chan *natsgo.Msg, options.Replies),
		Changed: sink.NewBell(),
		servers: options.Servers,
		closed:  make(chan struct{}),
		timer:   time.NewTimer(time.Hour),
		Timing:  options.Timing,
	}
	if options.Domain != "" {
		c.API = "$JS." + options.Domain + ".API."
	}
	c.life, c.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })
	var err error
	if c.NC, err = natsgo.Connect(options.URL, c.options(options)...); err != nil {
		err = ConnectError(c.servers, err)
	} else {
		c.Inbox = c.NC.NewInbox() + "."
		_, err = c.NC.ChanSubscribe(c.Inbox+">", c.Replies)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// Usable says whether the connection is as it was opened, or tells why not: not where the end of a context hit it.
func (c *Conn) Usable() bool {
	cause := context.Cause(c.life)
	return cause != context.Canceled && cause != context.DeadlineExceeded // as fail was given them
}

// EndWith makes the connection fail when ctx ends, until the returned function is called: a socket may take nothing,
// and knows no context.
func (c *Conn) EndWith(ctx context.Context) (leave func()) {
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })
	return func() {
		if !stop() {
			c.fail(ctx.Err()) // now, and not when its goroutine comes to it, in the middle of what comes next
		}
	}
}

// Bound is a context that ends with the connection, too, for the reason that Over tells, until leave is called.
func (c *Conn) Bound(ctx context.Context) (bounded context.Context, leave func()) {
	bounded, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { end(c.Over()) })
	return bounded, func() {
		stop()
		end(nil)
	}
}

func (c *Conn) options(o *Options) []natsgo.Option {
	note := func(_ *natsgo.Conn, err error) {
		if err != nil {
			c.fault.Store(&err)
		}
		c.Changed.Ring()
	}
	options := []natsgo.Option{
		natsgo.Name(o.Name),
		natsgo.Timeout(o.Timing.Dial),
		natsgo.SetCustomDialer(&dialer{life: c.life, timeout: o.Timing.Dial}),
		natsgo.SkipHostLookup(), // the dialer does it, and ends with its context
		natsgo.MaxReconnects(-1),
		natsgo.CustomReconnectDelay(reconnectDelay),
		natsgo.ReconnectBufSize(-1), // messages of an outage must not be sent after it
		natsgo.PingInterval(o.Timing.Ping),
		natsgo.FlusherTimeout(o.Timing.Flush),
		natsgo.ReconnectOnFlusherError(),
		natsgo.WriteBufferSize(writeBuffer),
		natsgo.SkipSubjectValidation(), // who writes does it
		natsgo.CustomInboxPrefix(Inboxes),
		// What follows is called by a goroutine of the library.
		natsgo.DisconnectErrHandler(note),
		natsgo.ReconnectErrHandler(note),
		natsgo.ReconnectHandler(func(*natsgo.Conn) { c.Changed.Ring() }),
		natsgo.ClosedHandler(func(nc *natsgo.Conn) {
			c.fail(c.givenUp(nc.LastError()))
			close(c.closed)
			c.Changed.Ring()
		}),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			if !errors.Is(err, natsgo.ErrPermissionViolation) {
				return
			}
			published := strings.Contains(err.Error(), "for Publish to")
			if err = Forbidden(err); published && o.Denied != nil {
				o.Denied(err)
				return
			}
			c.fail(err)
		}),
	}
	return slices.Concat(options, o.Login.Options(), o.Extra)
}

// reconnectDelay is quick at first, since most interruptions are the end of one server of several.
func reconnectDelay(rounds int) time.Duration {
	delay := min(10*time.Millisecond<<min(rounds-1, 10), 5*time.Second)
	return delay + rand.N(delay/2)
}

// Close ends the connection and waits for the library's goroutines.
func (c *Conn) Close(ctx context.Context) {
	c.fail(errClosed)
	if c.NC == nil {
		return
	}
	c.NC.Close()
	select {
	case <-c.closed:
	case <-ctx.Done():
	}
}

// Done is closed when nothing more comes of the connection.
func (c *Conn) Done() <-chan struct{} { return c.life.Done() }

// Over says why nothing more comes of the connection, nil while something may.
func (c *Conn) Over() error {
	cause := context.Cause(c.life)
	_, permanent := errors.AsType[*sink.PermanentError](cause)
	_, ended := errors.AsType[*EndedError](cause)
	if cause == nil || permanent || ended {
		return cause
	}
	return Ended("use connection to %s: %w", c.servers, cause)
}

// Settle waits until the server has answered to what was subscribed to, and says whether that was refused.
func (c *Conn) Settle(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, c.Reply)
	defer cancel()
	err := c.NC.FlushWithContext(bounded)
	if last := c.NC.LastError(); errors.Is(last, natsgo.ErrPermissionViolation) {
		return Forbidden(last) // before its handler is called
	}
	return errors.Join(c.Over(), err)
}

// Ready waits for a connection. It gives up from time to time, so that somebody hears of it.
func (c *Conn) Ready(ctx context.Context) error {
	c.timer.Reset(c.Outage)
	defer c.timer.Stop()
	for {
		if err := c.Over(); err != nil || c.NC.IsConnected() {
			return err
		}
		select {
		case <-c.Changed:
		case <-c.life.Done():
		case <-ctx.Done():
			return ctx.Err()
		case <-c.timer.C:
			return c.lost()
		}
	}
}

// givenUp tells why the library gave the connection up: it does so only if the same login was refused twice.
func (c *Conn) givenUp(cause error) error {
	err := ConnectError(c.servers, cmp.Or(cause, errClosed))
	if _, is := errors.AsType[*sink.PermanentError](err); is {
		return err
	}
	return &EndedError{err}
}

func (c *Conn) lost() error {
	if fault := c.fault.Load(); fault != nil {
		return fmt.Errorf("%w: %w", errDisconnected, Terse{*fault})
	}
	return errDisconnected
}

// ConnectError judges why there is no connection. What is wrong with the login or with a certificate is for a person.
func ConnectError(servers string, err error) error {
	for _, refused := range [...]error{
		natsgo.ErrAuthorization, natsgo.ErrAuthExpired, natsgo.ErrAuthRevoked, natsgo.ErrAccountAuthExpired,
		natsgo.ErrNkeysNotSupported,
	} {
		if errors.Is(err, refused) {
			return sink.Permanent("connect to %s: %w: check user, password, token, nkey or credentials file of the sink",
				servers, Terse{refused})
		}
	}
	var tlsRecord tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.Is(err, natsgo.ErrSecureConnWanted):
		return sink.Permanent("connect to %s: %w: switch TLS on in the server, or off in the sink", servers, Terse{err})
	case errors.As(err, &tlsRecord):
		return sink.Permanent("connect to %s: %w: set handshake first to what the server has", servers, Terse{err})
	case strings.Contains(text, "x509: "), strings.Contains(text, "tls: "):
		return sink.Permanent("connect to %s: %w: check CA file, server name and client certificate of the sink",
			servers, Terse{err})
	}
	why := Terse{err}.Error()
	var network net.Error
	switch {
	case errors.Is(err, natsgo.ErrNoServers):
		why = "nobody answers there"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	}
	return &UnreachableError{fmt.Sprintf("connect to %s: %s: check the URL, and that the server is up", servers, why), err}
}

// Forbidden says what a natsgo.ErrPermissionViolation is about. It is for a person, and turns
// `permissions violation: Permissions Violation for Publish to "a.b"` into `publish to "a.b": not permitted`.
func Forbidden(err error) error {
	what := Detail(err)
	if _, named, found := strings.Cut(err.Error(), "for "); found {
		what = strings.ToLower(named[:1]) + named[1:] + ": not permitted by the server"
	}
	return sink.Permanent("%s: allow it to the sink's user", what)
}

// Generation counts the connections to servers.
func (c *Conn) Generation() uint64 { return c.NC.Stats().Reconnects }

// Ask returns the next reply's number, and its subject.
func (c *Conn) Ask() (uint64, string) {
	c.Number++
	text := append(make([]byte, 0, 64), c.Inbox...)
	return c.Number, string(strconv.AppendUint(text, c.Number, 10))
}

// Next waits for a reply. It fails if the connection is not that of the generation any more: then replies are lost.
func (c *Conn) Next(ctx context.Context, generation uint64) (*natsgo.Msg, error) {
	select { // the quick way while replies stream in
	case m := <-c.Replies:
		return m, nil
	default:
	}
	c.timer.Reset(c.Reply)
	defer c.timer.Stop()
	for {
		select {
		case m := <-c.Replies:
			return m, nil
		case <-c.Changed:
			if !c.NC.IsConnected() || c.Generation() != generation {
				return nil, c.lost()
			}
		case <-c.life.Done():
			return nil, c.Over()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.timer.C:
			return nil, ErrSilent
		}
	}
}

// Request asks the JetStream API, subject without its prefix. The library's own requests do not notice that their
// connection is gone.
func (c *Conn) Request(ctx context.Context, subject string, body []byte, answer any) error {
	generation := c.Generation()
	number, reply := c.Ask()
	if err := c.PublishRequest(c.API+subject, reply, body); err != nil {
		return err
	}
	for {
		m, err := c.Next(ctx, generation)
		if err != nil {
			return err
		}
		if got, ok := c.NumberOf(m); ok && got == number {
			return Parse(m, answer)
		}
	}
}

// PublishRequest sends a request. Where nothing more can come of the connection, its error says why: the library's
// speaks of its buffer.
func (c *Conn) PublishRequest(subject, reply string, body []byte) error {
	if err := c.NC.PublishRequest(subject, reply, body); err != nil {
		return cmp.Or(c.Over(), err)
	}
	return nil
}

// Parse reads the answer. It returns the error that the answer holds, if it does.
func Parse(m *natsgo.Msg, answer any) error {
	if NoResponders(m) {
		return natsgo.ErrNoResponders
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(m.Data, answer)
}

// NoResponders says whether nobody has taken the request.
func NoResponders(m *natsgo.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// NumberOf is which Ask the reply is for, false where it is for none.
func (c *Conn) NumberOf(m *natsgo.Msg) (uint64, bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, c.Inbox), 10, 64)
	return number, err == nil
}

// writeBuffer is how many bytes are sent with one system call, or a message more.
const writeBuffer = 256 << 10

// dialer makes sockets that end with life. Without it, a socket whose other end takes nothing would keep the library,
// and with it Write and Close, for as long as it has patience.
type dialer struct {
	life    context.Context
	timeout time.Duration
}

// Dial is what the client library calls.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.timeout}
	raw, err := plain.DialContext(d.life, network, address)
	if err != nil {
		return nil, err
	}
	return &socket{raw, context.AfterFunc(d.life, func() { _ = raw.Close() })}, nil
}

type socket struct {
	net.Conn
	stop func() bool
}

func (s *socket) Close() error {
	s.stop()
	return s.Conn.Close()
}
