package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// Options are those of a Server. All are needed.
type Options struct {
	Address  string        // host:port
	StateDir string        // where commands look for the address
	Token    control.Token // that an operator's questions have to show
	Logger   *slog.Logger
}

// Server is the address that the process answers at. One run after the other serves it; who comes in between waits.
type Server struct {
	Options
	listener *net.TCPListener // nil before it is opened
}

// New opens nothing yet.
func New(o Options) *Server { return &Server{Options: o} }

// open returns the listener for the next server. The one before has ended.
func (s *Server) open(ctx context.Context) (net.Listener, error) {
	if s.listener == nil {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w: choose another address with --listen, or with listen in the configuration", s.Address, Cause(err))
		}
		s.listener = listener.(*net.TCPListener) // of the network "tcp"
	}
	if err := s.listener.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", s.Address, err)
	}
	return &listening{TCPListener: s.listener}, nil
}

// Close lets nobody in any more.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// listening is the address while one server has it.
type listening struct {
	*net.TCPListener
	over atomic.Bool
}

// Accept is net.Listener's.
func (s *listening) Accept() (net.Conn, error) {
	conn, err := s.TCPListener.Accept()
	if err != nil && s.over.Load() {
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close is net.Listener's. The address stays open for the next server.
func (s *listening) Close() error {
	s.over.Store(true)
	return s.SetDeadline(time.Unix(1, 0)) // Accept returns
}

// Cause is an error of the operating system without the path and the address, which the message has already.
func Cause(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}
