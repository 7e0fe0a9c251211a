package app

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// door is the address that the process answers at. One run after the other serves it; who comes in between waits.
type door struct {
	address  string
	listener *net.TCPListener // nil before it is opened
}

// open returns the listener for the next server. The one before has ended.
func (d *door) open(ctx context.Context) (net.Listener, error) {
	if d.listener == nil {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", d.address)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w: choose another address with --listen, or with listen in the configuration", d.address, Cause(err))
		}
		d.listener = listener.(*net.TCPListener) // of the network "tcp"
	}
	if err := d.listener.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", d.address, err)
	}
	return &shift{TCPListener: d.listener}, nil
}

// close lets nobody in any more.
func (d *door) close() error {
	if d.listener == nil {
		return nil
	}
	return d.listener.Close()
}

// shift is the door while one server has it.
type shift struct {
	*net.TCPListener
	over atomic.Bool
}

// Accept is net.Listener's.
func (s *shift) Accept() (net.Conn, error) {
	conn, err := s.TCPListener.Accept()
	if err != nil && s.over.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close is net.Listener's. The door stays open for the next server.
func (s *shift) Close() error {
	s.over.Store(true)
	return s.SetDeadline(time.Unix(1, 0)) // Accept returns
}
