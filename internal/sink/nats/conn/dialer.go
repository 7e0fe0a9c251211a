package conn

import (
	"bytes"
	"context"
	"errors"
	"net"
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

	deadlines sync.Mutex // guards the following
	sending   bool       // the deadline is that of send
	theirs    time.Time  // the deadline for writes that the client library has set last
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
// for so long is dead. One that did not take all is closed, so that the library makes another.
func (s *socket) send(parts *net.Buffers, within time.Duration) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.setSending(true, time.Now().Add(within))
	if err == nil {
		_, err = parts.WriteTo(s.Conn)
	}
	if after := s.setSending(false, time.Time{}); err == nil {
		err = after
	}
	if err != nil {
		_ = s.Close() // it may be closed already
	}
	return err
}

// setSending gives the socket the deadline of a send, or after it the one that the library has set last.
func (s *socket) setSending(sending bool, deadline time.Time) error {
	s.deadlines.Lock()
	defer s.deadlines.Unlock()
	if s.sending = sending; !sending {
		deadline = s.theirs
	}
	return s.Conn.SetWriteDeadline(deadline)
}

// SetWriteDeadline is what the client library calls around each of its writes, also while another one goes on. Of a
// send it leaves the deadline alone: the library clears its own in the end, and a send without one would wait for
// ever.
func (s *socket) SetWriteDeadline(deadline time.Time) error {
	s.deadlines.Lock()
	defer s.deadlines.Unlock()
	if s.theirs = deadline; s.sending {
		return nil
	}
	return s.Conn.SetWriteDeadline(deadline)
}

// SetDeadline is what the client library calls around the words of a new connection.
func (s *socket) SetDeadline(deadline time.Time) error {
	return errors.Join(s.SetReadDeadline(deadline), s.SetWriteDeadline(deadline))
}

func (s *socket) Close() error {
	s.stop()
	return s.Conn.Close()
}
