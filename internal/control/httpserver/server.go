package httpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// Server is the address that the process answers at. One run after the other serves it; who comes in between waits. All
// of its fields but StateDir are needed.
type Server struct {
	Address  string        // host:port
	StateDir string        // where commands look for the address; "" is nowhere
	Token    control.Token // that an operator's questions have to show
	Logger   *slog.Logger

	root   Branch // of the whole address
	opened string // the address that it has
	http   *http.Server
	done   chan struct{} // closed when http has ended; nil before it is opened
}

// Serve answers at the address until the returned function is called, which waits for all answers. The state directory
// says where, for the commands.
func (s *Server) Serve(ctx context.Context, handler http.Handler) (stop func(), err error) {
	if s.done == nil {
		if err := s.open(ctx); err != nil {
			return nil, err
		}
	}
	return s.root.Serve(ctx, handler)
}

// open begins to listen, until Close.
func (s *Server) open(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: choose another address with --listen, or with listen in the configuration", s.Address, control.Cause(err))
	}
	s.root.server, s.root.stateDir, s.opened = s, s.StateDir, listener.Addr().String()
	s.http, s.done = newServer(&s.root), make(chan struct{})
	go func() {
		defer close(s.done)
		if err := s.http.Serve(Bounded(listener)); !errors.Is(err, http.ErrServerClosed) {
			s.Logger.Error("status server ended", "address", s.Address, "error", err)
		}
	}()
	s.Logger.Info("serving metrics and status", "address", s.opened)
	return nil
}

// newServer bounds what a connection may take: the port is open to whoever may reach the exporter.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
}

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute // metrics are asked for every minute or more often
	maxHeader  = 16 << 10        // bytes
)

// Close lets nobody in any more, and waits for the server's goroutine. Nobody is owed the end of an answer.
func (s *Server) Close() error {
	if s.done == nil {
		return nil
	}
	err := s.http.Close()
	<-s.done
	return err
}

// Branch is what is served below a path of a Server that serves already: one run after the other, and in between that
// there is none. It is the Server's own handler that asks it.
type Branch struct {
	server         *Server
	path, stateDir string

	inside  sync.RWMutex // read-locked by each request
	handler http.Handler // guarded by inside; nil is none
}

// Branch is one of the path, such as /clusters/prod-eu1, whose address is told in the state directory.
func (s *Server) Branch(path, stateDir string) *Branch {
	return &Branch{server: s, path: path, stateDir: stateDir}
}

// Serve is as Server.Serve.
func (b *Branch) Serve(ctx context.Context, handler http.Handler) (stop func(), err error) {
	answering, stopAnswering := context.WithCancel(context.WithoutCancel(ctx)) // also while the queues are emptied
	b.set(http.StripPrefix(b.path, until(answering, handler)))
	withdraw := b.announce()
	return func() {
		withdraw()
		stopAnswering()
		b.set(nil)
	}, nil
}

// announce writes the address, with the path, into the state directory, with what its questions have to show, and
// returns what removes it. Without it the exporter works, and the commands cannot ask it.
func (b *Branch) announce() (withdraw func()) {
	if b.stateDir == "" {
		return func() {}
	}
	warn := func(err error) {
		if err != nil {
			b.server.Logger.Warn("commands cannot reach this exporter", "error", err)
		}
	}
	remove, err := control.Announce(b.stateDir, b.server.opened+b.path, b.server.Token)
	warn(err)
	return func() { warn(remove()) }
}

// set returns when nobody is inside any more: the state that requests read is closed after them.
func (b *Branch) set(handler http.Handler) {
	b.inside.Lock()
	defer b.inside.Unlock()
	b.handler = handler
}

// ServeHTTP is http.Handler's.
func (b *Branch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for !b.answers(w, r) {
		if b.path != "" {
			http.Error(w, "this cluster is not followed now: see /statusz", http.StatusServiceUnavailable)
			return
		}
		select {
		case <-time.After(waiting):
		case <-r.Context().Done():
			return
		}
	}
}

const (
	waiting = 50 * time.Millisecond // how often who comes between two runs looks for the next one
	grace   = time.Second           // how long the end of an answer may take when a run ends
)

// answers is false where nothing is served.
func (b *Branch) answers(w http.ResponseWriter, r *http.Request) bool {
	b.inside.RLock()
	defer b.inside.RUnlock()
	if b.handler == nil {
		return false
	}
	b.handler.ServeHTTP(w, r)
	return true
}

// until ends each request with ctx, and soon after it one whose other end stands still.
func until(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, func() {
			cancel()
			connection, soon := http.NewResponseController(w), time.Now().Add(grace)
			_ = errors.Join(connection.SetReadDeadline(soon), connection.SetWriteDeadline(soon)) // where it fails, reading and writing fail, too
		})()
		handler.ServeHTTP(w, r.WithContext(answering))
	})
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
	open []*placed  // the oldest first
}

// Bounded is the listener with places for so many connections and no more.
func Bounded(l net.Listener) net.Listener { return &places{Listener: l} }

// placed is a connection that has a place until it is closed.
type placed struct {
	net.Conn
	at   *places
	from netip.Addr
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
	c.at.mu.Lock()
	c.at.open = slices.DeleteFunc(c.at.open, func(o *placed) bool { return o == c })
	c.at.mu.Unlock()
	return c.Conn.Close()
}

// admit gives the connection a place, and returns the one that has to go for it, nil for none.
func (p *places) admit(c *placed) (victim *placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, all := p.taken(c.from.IsLoopback())
	most, ofOne, greediest := placesAway, placesOfOne, c.from
	if c.from.IsLoopback() {
		most, ofOne = placesHere, placesHere
	}
	if of[c.from] < ofOne {
		for from, n := range of {
			if n > of[greediest] {
				greediest = from
			}
		}
	}
	if of[c.from] >= ofOne || all >= most {
		victim = p.open[slices.IndexFunc(p.open, func(o *placed) bool { return o.from == greediest })]
	}
	p.open = append(p.open, c)
	return victim
}

// taken is how many places are taken by this host, or by all others, and by each address of them.
func (p *places) taken(here bool) (of map[netip.Addr]int, all int) {
	of = map[netip.Addr]int{}
	for _, o := range p.open {
		if o.from.IsLoopback() == here {
			of[o.from]++
			all++
		}
	}
	return of, all
}
