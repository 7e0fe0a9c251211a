package wire

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// dialer makes connections that are ready for Kafka's protocol: encrypted where the options say so, and guarded.
type dialer struct {
	options *Options

	mu     sync.Mutex
	closed bool
	conns  map[*guarded]struct{} // that the transport has not closed
	gone   chan struct{}         // closed when the last of them is; made by close
}

// dial is what the transport calls.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.open(ctx, network, address, d.options.TLS)
}

func (d *dialer) open(ctx context.Context, network, address string, security *TLS) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.patience())
	defer cancel()
	raw, err := d.options.Dial(ctx, network, address)
	if err != nil {
		return nil, dialError(address, err)
	}
	conn := raw
	if security != nil {
		if conn, err = security.handshake(ctx, raw, address); err != nil {
			_ = raw.Close() // the handshake's error is the one to tell of
			return nil, err
		}
	}
	return d.adopt(&guarded{Conn: conn, raw: raw, address: address, tls: security != nil})
}

// patience is for one address: the transport tries all that it has within one limit.
func (d *dialer) patience() time.Duration {
	if len(d.options.Brokers) > 1 {
		return connectTimeout / 2
	}
	return connectTimeout
}

// adopt keeps a connection until the transport closes it.
func (d *dialer) adopt(conn *guarded) (net.Conn, error) {
	d.mu.Lock()
	closed := d.closed
	conn.dropped = func() { d.drop(conn) }
	if !closed {
		d.conns[conn] = struct{}{}
	}
	d.mu.Unlock()
	if closed {
		_ = conn.raw.Close() // nobody has used it
		return nil, errClosed
	}
	return conn, nil
}

func (d *dialer) drop(conn *guarded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, conn)
	if d.gone != nil && len(d.conns) == 0 {
		close(d.gone)
		d.gone = nil
	}
}

// close breaks all connections, so that whatever of the transport waits for one ends, and waits until it has dropped
// them.
func (d *dialer) close() {
	d.mu.Lock()
	if d.closed || len(d.conns) == 0 {
		d.closed = true
		d.mu.Unlock()
		return
	}
	d.closed = true
	gone := make(chan struct{})
	d.gone = gone
	conns := slices.Collect(maps.Keys(d.conns))
	d.mu.Unlock()
	for _, conn := range conns {
		_ = conn.raw.Close() // not TLS's, which would say goodbye first; the transport closes it again
	}
	limit := time.NewTimer(connectTimeout)
	defer limit.Stop()
	select {
	case <-gone:
	case <-limit.C:
	}
}
