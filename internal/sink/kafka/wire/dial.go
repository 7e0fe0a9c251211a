package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

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

// clientID is as the brokers' quotas and logs show it.
const clientID = "kubecdc"

// Options configures a Cluster. Brokers is needed.
type Options struct {
	Brokers []string      // host:port; any one of them leads to the others
	TLS     *TLS          // nil is plaintext
	SASL    *SASL         // nil is no login
	Timeout time.Duration // of one request, the connection for it included; 0 is 5 s

	// Throttled is told, from any goroutine, that a request waits so long because a broker's quota is used up; nil is
	// nobody.
	Throttled func(left time.Duration)

	// Dial opens the plain connection; TLS and login are done on top. nil is net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// complete fills in the defaults, and checks what the configuration's own check leaves to the sink: what files hold,
// and what goes with what. It reports all problems at once.
func (o *Options) complete() error {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Throttled == nil {
		o.Throttled = func(time.Duration) {}
	}
	var problems []error
	if o.TLS != nil {
		_, err := o.TLS.Config("kafka.tls")
		problems = append(problems, err)
	}
	if o.SASL != nil {
		problems = append(problems, o.SASL.check(o.TLS != nil))
	}
	return errors.Join(problems...)
}

// connectTimeout is the limit for a connection that is ready for requests.
func (o *Options) connectTimeout() time.Duration {
	if o.SASL != nil && (o.SASL.Mechanism == OAuthBearer || o.SASL.Mechanism == AWSMSKIAM) {
		return max(o.Timeout, connectTimeout) // somebody else is asked for a token meanwhile
	}
	return connectTimeout
}

// connectTimeout is for a connection with TLS, and again for the login on it: a dead broker costs that much whenever it
// is drawn.
const connectTimeout = 2 * time.Second

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
