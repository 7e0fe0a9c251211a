package conn

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// dialer makes sockets that end with life. Without it, a socket whose other end takes nothing would keep the library,
// and with it Write and Close, for as long as it has patience.
type dialer struct {
	life    context.Context
	timeout time.Duration
	last    atomic.Pointer[socket] // the newest socket
}

// Dial is what the client library calls.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: d.timeout}
	raw, err := plain.DialContext(d.life, network, address)
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: raw, stop: context.AfterFunc(d.life, func() { _ = raw.Close() })}
	d.last.Store(s)
	return s, nil
}

type socket struct {
	net.Conn
	stop  func() bool
	plain atomic.Bool // what is written is NATS's protocol, neither TLS nor a websocket

	writing sync.Mutex // held for a write, guards the following
	spoke   bool
}

// Write is what the client library calls. Its first words are CONNECT, or they are of another protocol.
func (s *socket) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if !s.spoke {
		s.spoke = true
		s.plain.Store(bytes.HasPrefix(b, []byte("CONNECT ")))
	}
	return s.Conn.Write(b)
}

// send writes all parts, which it uses up, with nothing of the library's between them. A socket that takes nothing
// for so long is dead. One that did not take all is closed, so that the library makes another. It has no deadline: the
// library sets and clears that around each of its writes, also while another one goes on.
func (s *socket) send(parts *net.Buffers, within time.Duration) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	dead := time.AfterFunc(within, func() { _ = s.Conn.Close() })
	_, err := parts.WriteTo(s.Conn)
	if inTime := dead.Stop(); err != nil {
		_ = s.Close() // it may be closed already
		if !inTime {
			return os.ErrDeadlineExceeded
		}
	}
	return err
}

func (s *socket) Close() error {
	s.stop()
	return s.Conn.Close()
}
