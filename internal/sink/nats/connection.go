package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// tuning is what tests turn down.
type tuning struct {
	reply   time.Duration // without any answer for so long, an attempt has failed
	outage  time.Duration // how often Retry is told that there is still no connection
	dial    time.Duration
	flush   time.Duration // a socket that takes nothing for so long is dead
	ping    time.Duration
	look    time.Duration // how often a stream is compared with what it held, while something is written
	quiet   time.Duration // a stream that stays as it is for so long has taken all that was on its way
	pending int           // messages that may wait for their acknowledgement
	bytes   int           // and their bytes; the server's own queue of a stream takes 128 MiB
}

func defaultTuning() tuning {
	return tuning{
		reply: 5 * time.Second, outage: 5 * time.Second, dial: 5 * time.Second, flush: 10 * time.Second,
		ping: 15 * time.Second, look: 10 * time.Second, quiet: time.Second, pending: 1024, bytes: 8 << 20,
	}
}

// connection is the client library's connection with what the sink needs of it: replies to numbered subjects, and
// word of what happened to it. The library reconnects by itself, and keeps nothing to send it again later: what was
// under way when a connection broke is for the sink to find out.
type connection struct {
	nc      *natsgo.Conn
	servers string // for error texts
	api     string // the prefix of the JetStream API's subjects
	inbox   string // replies come to this and a number, or a batch and a number in it
	number  uint64 // of the last reply that was asked for
	replies chan *natsgo.Msg
	changed chan struct{} // the connection came, went or ended since the last look
	closed  chan struct{} // the library is done with it
	timer   *time.Timer
	reply   time.Duration
	outage  time.Duration
	flush   time.Duration
	dialer  *dialer
	outbox  outbox
	fault   atomic.Pointer[error] // the last thing that went wrong with a server
	wished  atomic.Pointer[wished]

	// life ends when nothing more can come of this connection, for the reason that is its cause. Its sockets end
	// with it, so nothing stays blocked in one.
	life context.Context
	fail context.CancelCauseFunc
}

func (s *Sink) connect(ctx context.Context) (*connection, error) {
	c := &connection{
		api:     "$JS.API.",
		servers: s.options.servers(),
		replies: make(chan *natsgo.Msg, 4*s.tuning.pending), // those of an attempt that was given up come, too
		changed: make(chan struct{}, 1),
		closed:  make(chan struct{}),
		timer:   time.NewTimer(time.Hour),
		reply:   s.tuning.reply,
		outage:  s.tuning.outage,
		flush:   s.tuning.flush,
	}
	if s.options.Domain != "" {
		c.api = "$JS." + s.options.Domain + ".API."
	}
	c.life, c.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	c.dialer = &dialer{life: c.life, timeout: s.tuning.dial}
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })
	err := c.dial(s)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		c.close(ctx)
		return nil, err
	}
	return c, nil
}

// alive is the connection, or a new one if the end of a context hit the last Write when all of it was stored already.
func (s *Sink) alive(ctx context.Context) (*connection, error) {
	var permanent *sink.PermanentError
	if s.conn.life.Err() == nil || errors.As(context.Cause(s.conn.life), &permanent) {
		return s.conn, nil
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.shut(ctx)
	s.conn, s.generation = c, math.MaxUint64 // none
	return c, nil
}

func (c *connection) dial(s *Sink) error {
	var err error
	if c.nc, err = natsgo.Connect(s.options.URL, c.options(s)...); err != nil {
		return connectError(c.servers, err)
	}
	c.inbox = c.nc.NewInbox() + "."
	c.outbox.reset(c)
	if _, err := c.nc.ChanSubscribe(c.inbox+">", c.replies); err != nil {
		return err
	}
	return nil
}

func (c *connection) options(s *Sink) []natsgo.Option {
	options := []natsgo.Option{
		natsgo.Name(s.options.Name),
		natsgo.Timeout(s.tuning.dial),
		natsgo.SetCustomDialer(c.dialer),
		natsgo.SkipHostLookup(), // the dialer does it, and ends with its context
		natsgo.MaxReconnects(-1),
		natsgo.CustomReconnectDelay(reconnectDelay),
		natsgo.ReconnectBufSize(-1), // messages of an outage must not be sent after it
		natsgo.PingInterval(s.tuning.ping),
		natsgo.FlusherTimeout(s.tuning.flush),
		natsgo.SkipSubjectValidation(), // screen does it
	}
	if s.options.InboxPrefix != "" {
		options = append(options, natsgo.CustomInboxPrefix(s.options.InboxPrefix))
	}
	return slices.Concat(options, s.options.login(), s.options.Extra, c.handlers())
}

// plain is the socket by which the library is connected, or nil if what goes through it is not the bare protocol. While
// the library connects it says so, and a socket that it has given up takes nothing any more.
func (c *connection) plain() *mortal {
	m := c.dialer.last.Load()
	if m == nil || !c.nc.IsConnected() || !c.nc.HeadersSupported() || !m.plain.Load() {
		return nil
	}
	return m
}

// handlers are called by a goroutine of the library.
func (c *connection) handlers() []natsgo.Option {
	note := func(_ *natsgo.Conn, err error) {
		if err != nil {
			c.fault.Store(&err)
		}
		c.wake()
	}
	return []natsgo.Option{
		natsgo.DisconnectErrHandler(note),
		natsgo.ReconnectErrHandler(note),
		natsgo.ReconnectHandler(func(*natsgo.Conn) { c.wake() }),
		natsgo.ClosedHandler(func(*natsgo.Conn) {
			close(c.closed)
			c.wake()
		}),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			if errors.Is(err, natsgo.ErrPermissionViolation) && !c.denied(err) {
				c.fail(permanent("%s: allow it to the sink's user", permission(err)))
			}
		}),
	}
}

func (c *connection) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// reconnectDelay is quick at first, since most interruptions are the end of one server of several.
func reconnectDelay(rounds int) time.Duration {
	delay := min(10*time.Millisecond<<min(rounds-1, 10), 5*time.Second)
	return delay + rand.N(delay/2)
}

// close ends the connection and waits for the library's goroutines.
func (c *connection) close(ctx context.Context) {
	c.fail(errClosed)
	if c.nc == nil {
		return
	}
	c.nc.Close()
	select {
	case <-c.closed:
	case <-ctx.Done():
	}
}

// ready waits for a connection. It gives up from time to time, so that somebody hears of it.
func (c *connection) ready(ctx context.Context) error {
	c.timer.Reset(c.outage)
	defer c.timer.Stop()
	for {
		switch {
		case c.life.Err() != nil:
			return c.dead()
		case c.nc.IsConnected():
			return nil
		case c.nc.IsClosed():
			return c.ended()
		}
		select {
		case <-c.changed:
		case <-c.life.Done():
		case <-ctx.Done():
			return ctx.Err()
		case <-c.timer.C:
			return c.lost()
		}
	}
}

// dead tells why life ended.
func (c *connection) dead() error {
	cause := context.Cause(c.life)
	var permanent *sink.PermanentError
	if errors.As(cause, &permanent) {
		return cause
	}
	return reopen("use connection to %s: %w", c.servers, cause)
}

// ended tells why the library gave the connection up: it does so only if the same login was refused twice.
func (c *connection) ended() error {
	cause := c.nc.LastError()
	if cause == nil {
		cause = errClosed
	}
	err := connectError(c.servers, cause)
	var permanent *sink.PermanentError
	if errors.As(err, &permanent) {
		return err
	}
	return &reopenError{err}
}

func (c *connection) lost() error {
	if fault := c.fault.Load(); fault != nil {
		return fmt.Errorf("%w: %w", errDisconnected, terse{*fault})
	}
	return errDisconnected
}

// connectError judges why there is no connection. What is wrong with the login or with a certificate is for a person.
func connectError(servers string, err error) error {
	for _, refused := range [...]error{
		natsgo.ErrAuthorization, natsgo.ErrAuthExpired, natsgo.ErrAuthRevoked, natsgo.ErrAccountAuthExpired,
		natsgo.ErrNkeysNotSupported,
	} {
		if errors.Is(err, refused) {
			return permanent("connect to %s: %w: check user, password, token, nkey or credentials file of the sink",
				servers, terse{refused})
		}
	}
	var tlsRecord tls.RecordHeaderError
	text := err.Error()
	switch {
	case errors.Is(err, natsgo.ErrSecureConnWanted):
		return permanent("connect to %s: %w: switch TLS on in the server, or off in the sink", servers, terse{err})
	case errors.As(err, &tlsRecord):
		return permanent("connect to %s: %w: set handshake first to what the server has", servers, terse{err})
	case strings.Contains(text, "x509: "), strings.Contains(text, "tls: "):
		return permanent("connect to %s: %w: check CA file, server name and client certificate of the sink",
			servers, terse{err})
	}
	return unreachable(servers, err)
}

// permission turns `permissions violation: Permissions Violation for Publish to "a.b"` into `publish to "a.b"`.
func permission(err error) string {
	_, what, found := strings.Cut(err.Error(), "for ")
	if !found {
		return detail(err)
	}
	return strings.ToLower(what[:1]) + what[1:] + ": not permitted by the server"
}
