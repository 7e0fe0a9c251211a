package nats

import (
	"context"
	"net"
	"time"
)

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
	return &mortal{Conn: raw, stop: context.AfterFunc(d.life, func() { _ = raw.Close() })}, nil
}

type mortal struct {
	net.Conn
	stop func() bool
}

func (m *mortal) Close() error {
	m.stop()
	return m.Conn.Close()
}
