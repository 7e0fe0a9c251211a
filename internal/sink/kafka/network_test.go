package kafka

import (
	"context"
	"net"
	"sync"
)

// network is the way of a sink's connections, which tests cut and stall.
type network struct {
	mu    sync.Mutex
	conns map[*testConn]struct{}
	open  chan struct{} // closed while bytes pass
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

type testConn struct {
	net.Conn
	network *network
	once    sync.Once
	closed  chan struct{}
}

func (c *testConn) Read(p []byte) (int, error) {
	count, err := c.Conn.Read(p)
	c.wait()
	return count, err
}

func (c *testConn) Write(p []byte) (int, error) {
	c.wait()
	return c.Conn.Write(p)
}

func (c *testConn) wait() {
	select {
	case <-c.network.gate():
	case <-c.closed:
	}
}

func (c *testConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.conns, c)
	})
	return c.Conn.Close()
}
