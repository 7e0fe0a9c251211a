package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// network is the way of a sink's connections, which tests cut and stall. It can keep what was sent when its sender is
// gone, as a socket does.
type network struct {
	mu    sync.Mutex
	conns map[*testConn]struct{}
	open  chan struct{} // closed while bytes pass
	held  *held
}

func newNetwork() *network {
	open := make(chan struct{})
	close(open)
	return &network{conns: map[*testConn]struct{}{}, open: open}
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	inner, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &testConn{Conn: inner, network: n, closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = struct{}{}
	return c, nil
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Conn.Close()
	}
}

func (n *network) stall() (resume func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	stalled := make(chan struct{})
	n.open = stalled
	return sync.OnceFunc(func() { close(stalled) })
}

func (n *network) gate() chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

// held is what the network keeps.
type held struct {
	sent  chan struct{} // closed when something is kept
	conns []*testConn
	only  int16 // the request with which a connection is held, or anyRequest
}

const (
	anyRequest     int16 = -1
	initProducerID int16 = 22
)

// hold keeps what connections send from now on, each from the first such request.
func (n *network) hold(only int16) *held {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = &held{sent: make(chan struct{}), only: only}
	return n.held
}

// kill ends the sink without a word while it waits for the answer to what the network keeps.
func (h *held) kill(t *testing.T, s *Sink, call func(context.Context) error) {
	t.Helper()
	given, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		select {
		case <-h.sent:
			giveUp()
		case <-given.Done():
		}
	}()
	if err := call(given); !errors.Is(err, context.Canceled) {
		t.Fatalf("a call that nobody answers: %v", err)
	}
	s.cluster.Close()
	s.cluster = nil
}

// release returns when the brokers have answered all that was kept, and closed the connections.
func (h *held) release() {
	for _, c := range h.conns {
		_ = c.SetDeadline(time.Time{})
		_, _ = c.Conn.Write(c.kept)
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c.Conn)
		_ = c.Conn.Close()
	}
}

type testConn struct {
	net.Conn
	network *network
	once    sync.Once
	closed  chan struct{}
	held    *held // nil while what is sent passes
	kept    []byte
}

func (c *testConn) Read(p []byte) (int, error) {
	count, err := c.Conn.Read(p)
	c.wait()
	return count, err
}

func (c *testConn) Write(p []byte) (int, error) {
	c.wait()
	if c.keeps(p) {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// keeps says whether the network keeps the bytes, which are a request or a part of one.
func (c *testConn) keeps(p []byte) bool {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if h := c.network.held; c.held == nil && h != nil && (h.only == anyRequest || len(p) > 6 && int16(binary.BigEndian.Uint16(p[4:])) == h.only) {
		if c.held = h; len(h.conns) == 0 {
			close(h.sent)
		}
		h.conns = append(h.conns, c)
	}
	if c.held != nil {
		c.kept = append(c.kept, p...)
	}
	return c.held != nil
}

func (c *testConn) wait() {
	select {
	case <-c.network.gate():
	case <-c.closed:
	}
}

func (c *testConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.conns, c)
	if c.held != nil { // the broker does not hear of it
		return c.SetDeadline(time.Now())
	}
	return c.Conn.Close()
}
