package source

import (
	"context"
	"net"
	"time"
)

const (
	// minAhead is what a quiet connection costs.
	minAhead = 8 << 10
	// maxAhead is the most that is asked of a connection at once, and that is in memory of a watch that stands still.
	// TLS asks for 32 KiB; the kernel's work for each answer, and waiting for the next, cost more than to copy the
	// bytes once more.
	maxAhead = 512 << 10
)

// dialFunc opens connections, as rest.Config.Dial.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// aheadDialer returns one whose connections are read ahead. dial opens them; nil is client-go's own way.
func aheadDialer(dial dialFunc) dialFunc {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &aheadConn{Conn: conn, buf: make([]byte, minAhead)}, nil
	}
}

// aheadConn is a connection that takes all that is there, as far as it has room, and hands it out piece by piece. Its
// room grows while it is filled, and shrinks while little comes. Read is for one goroutine at a time.
type aheadConn struct {
	net.Conn
	buf  []byte // for the next read
	held []byte // what was read and is not handed out yet
	err  error  // of the last read, due when held is used up
}

// Read is net.Conn's. As of a bare connection, it blocks only while nothing is there.
func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.held) == 0 && c.err == nil {
		c.fill()
	}
	if len(c.held) == 0 {
		err := c.err
		c.err = nil // a deadline may be set anew
		return 0, err
	}
	n := copy(p, c.held)
	c.held = c.held[n:]
	return n, nil
}

// fill reads once, and makes the room for the next time. It may block for hours, so nothing else stays in memory.
func (c *aheadConn) fill() {
	c.held = nil
	n, err := c.Conn.Read(c.buf)
	c.held, c.err = c.buf[:n], err
	switch size := len(c.buf); {
	case n == size && size < maxAhead:
		c.buf = make([]byte, 2*size)
	case n < size/32 && size > minAhead:
		c.buf = make([]byte, size/2)
	}
}
