package httpserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

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
	of    map[netip.Addr][]*placed
	taken int
}

// Bounded is the listener with places for so many connections and no more.
func Bounded(l net.Listener) net.Listener { return newPlaces(l) }

func newPlaces(l net.Listener) *places {
	return &places{Listener: l, here: seats{of: map[netip.Addr][]*placed{}}, away: seats{of: map[netip.Addr][]*placed{}}}
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
	c := &placed{Conn: conn, at: p, from: hostOf(conn.RemoteAddr().String())}
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
	s, all, one := &p.away, placesAway, placesOfOne
	if c.from.IsLoopback() {
		s, all, one = &p.here, placesHere, placesHere
	}
	switch {
	case len(s.of[c.from]) >= one:
		victim = s.of[c.from][0]
	case s.taken >= all:
		victim = s.of[s.greediest()][0]
	}
	s.of[c.from] = append(s.of[c.from], c)
	s.taken++
	return victim
}

func (p *places) leave(c *placed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.away
	if c.from.IsLoopback() {
		s = &p.here
	}
	s.taken--
	if s.of[c.from] = slices.DeleteFunc(s.of[c.from], func(o *placed) bool { return o == c }); len(s.of[c.from]) == 0 {
		delete(s.of, c.from)
	}
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

// hostOf is the zero Addr for what is no address and port.
func hostOf(address string) netip.Addr {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}
	}
	return parsed.Addr().Unmap().WithZone("")
}
