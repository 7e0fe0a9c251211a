package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

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
		if err := server.Serve(Bounded(listener)); !errors.Is(err, http.ErrServerClosed) {
			s.Logger.Error("status server ended", "address", s.Address, "error", err)
		}
	}()
	if first {
		s.Logger.Info("serving metrics and status", "address", listener.Addr().String())
	}
	withdraw := func() {}
	if s.StateDir != "" {
		withdraw = s.announce(s.StateDir, "")
	}
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

// announce writes the address, with the path, into the state directory, with what its questions have to show, and
// returns what removes it. Without it the exporter works, and the commands cannot ask it.
func (s *Server) announce(dir, path string) (withdraw func()) {
	warn := func(err error) {
		if err != nil {
			s.Logger.Warn("commands cannot reach this exporter", "error", err)
		}
	}
	remove, err := control.Announce(dir, s.listener.Addr().String()+path, s.Token)
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

// Branch is what is served below a path of a Server that serves already: one run after the other, and in between that
// there is none. It is the Server's own handler that asks it.
type Branch struct {
	server         *Server
	path, stateDir string
	open           atomic.Pointer[gate] // nil is none
}

// Branch is one of the path, such as /clusters/prod-eu1, whose address is told in the state directory.
func (s *Server) Branch(path, stateDir string) *Branch {
	return &Branch{server: s, path: path, stateDir: stateDir}
}

// Serve is as Server.Serve.
func (b *Branch) Serve(ctx context.Context, handler http.Handler) (stop func(), err error) {
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx))
	open := &gate{handler: http.StripPrefix(b.path, until(answering, handler))}
	b.open.Store(open)
	withdraw := b.server.announce(b.stateDir, b.path)
	return func() {
		withdraw()
		b.open.Store(nil)
		stopAnswering()
		open.shut()
	}, nil
}

// ServeHTTP is http.Handler's.
func (b *Branch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := b.open.Load()
	if open == nil {
		http.Error(w, "this cluster is not followed now: see /statusz", http.StatusServiceUnavailable)
		return
	}
	open.ServeHTTP(w, r)
}

// until ends each request with ctx.
func until(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		handler.ServeHTTP(w, r.WithContext(answering))
	})
}

// Server is the address that the process answers at. One run after the other serves it; who comes in between waits. All
// of its fields but StateDir are needed.
type Server struct {
	Address  string        // host:port
	StateDir string        // where commands look for the address; "" is nowhere
	Token    control.Token // that an operator's questions have to show
	Logger   *slog.Logger

	listener *net.TCPListener // nil before it is opened
}

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
	if system, is := errors.AsType[*os.SyscallError](err); is {
		return system.Err
	}
	return err
}

// The places for connections: of this host, of all others together, and of one of these. A connection costs some 20
// KiB.
const (
	placesHere  = 128
	placesAway  = 256
	placesOfOne = 64
)

// places is a listener that holds so many connections and no more (I6). A new one always comes in: the oldest of
// whoever has the most goes for it. So who opens thousands takes places from himself, and neither from probes nor from
// metrics; and the places of this host are its own.
type places struct {
	net.Listener
	mu   sync.Mutex // guards the following
	here seats
	away seats
}

// seats are the open connections by address, the oldest first.
type seats struct {
	all, one int // how many there may be, and of one address
	of       map[netip.Addr][]*placed
	taken    int
}

// Bounded is the listener with places for so many connections and no more.
func Bounded(l net.Listener) net.Listener {
	return &places{
		Listener: l,
		here:     seats{all: placesHere, one: placesHere, of: map[netip.Addr][]*placed{}},
		away:     seats{all: placesAway, one: placesOfOne, of: map[netip.Addr][]*placed{}},
	}
}

// placed is a connection that has a place until it is closed.
type placed struct {
	net.Conn
	at    *places
	from  netip.Addr
	given sync.Once
}

// Accept is net.Listener's.
func (p *places) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &placed{Conn: conn, at: p} // from the zero Addr, for what is no address and port
	if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.from = from.Addr().Unmap().WithZone("")
	}
	if victim := p.admit(c); victim != nil {
		victim.Close() // whoever it is has others
	}
	return c, nil
}

// Close is net.Conn's.
func (c *placed) Close() error {
	c.given.Do(func() { c.at.leave(c) })
	return c.Conn.Close()
}

// admit gives the connection a place, and returns the one that has to go for it, nil for none.
func (p *places) admit(c *placed) (victim *placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seatsOf(c)
	switch {
	case len(s.of[c.from]) >= s.one:
		victim = s.of[c.from][0]
	case s.taken >= s.all:
		victim = s.of[s.greediest()][0]
	}
	s.of[c.from] = append(s.of[c.from], c)
	s.taken++
	return victim
}

func (p *places) leave(c *placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seatsOf(c)
	s.taken--
	if s.of[c.from] = slices.DeleteFunc(s.of[c.from], func(o *placed) bool { return o == c }); len(s.of[c.from]) == 0 {
		delete(s.of, c.from)
	}
}

func (p *places) seatsOf(c *placed) *seats {
	if c.from.IsLoopback() {
		return &p.here
	}
	return &p.away
}

// greediest is the address with the most connections.
func (s *seats) greediest() (most netip.Addr) {
	for from, conns := range s.of {
		if len(conns) > len(s.of[most]) {
			most = from
		}
	}
	return most
}
