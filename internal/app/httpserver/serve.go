package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// Beside serves others, and at the paths what is there.
func Beside(others, there http.Handler, paths []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", others)
	for _, path := range paths {
		mux.Handle(path, there)
	}
	return mux
}

// Serve answers at the address until the returned function is called, which waits for the server's goroutine and for
// all answers. The state directory says where, for the commands.
func (s *Server) Serve(ctx context.Context, handler http.Handler) (stop func(), err error) {
	first := s.listener == nil
	listener, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx)) // also while the queues are emptied
	open := &gate{handler: handler}
	server := newServer(open, answering)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(newPlaces(listener)); !errors.Is(err, http.ErrServerClosed) {
			s.Logger.Error("status server ended", "address", s.Address, "error", err)
		}
	}()
	if first {
		s.Logger.Info("serving metrics and status", "address", listener.Addr().String())
	}
	withdraw := s.announce(listener.Addr())
	return func() {
		withdraw()
		stopAnswering()
		server.Close() // nobody is owed the end of an answer
		open.shut()
		<-done
	}, nil
}

// newServer bounds what a connection may take: the port is open to whoever may reach the exporter.
func newServer(handler http.Handler, answering context.Context) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return answering },
	}
}

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute // metrics are asked for every minute or more often
	maxHeader  = 16 << 10        // bytes
)

// announce writes the address into the state directory, with what its questions have to show, and returns what removes
// it. Without it the exporter works, and the commands cannot ask it.
func (s *Server) announce(address net.Addr) (withdraw func()) {
	warn := func(err error) {
		if err != nil {
			s.Logger.Warn("commands cannot reach this exporter", "error", err)
		}
	}
	remove, err := control.Announce(s.StateDir, address, s.Token)
	if err != nil {
		warn(err)
		return func() {}
	}
	return func() { warn(remove()) }
}

// gate lets requests in until it is shut. http.Server.Close does not wait for handlers, and the state that they read is
// closed after it.
type gate struct {
	handler http.Handler
	inside  sync.RWMutex // read-locked by each request
	closed  bool         // guarded by inside
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.inside.RLock()
	defer g.inside.RUnlock()
	if g.closed {
		http.Error(w, "the exporter is stopping", http.StatusServiceUnavailable)
		return
	}
	g.handler.ServeHTTP(w, r)
}

// shut returns when nobody is inside, and lets nobody in any more.
func (g *gate) shut() {
	g.inside.Lock()
	defer g.inside.Unlock()
	g.closed = true
}
