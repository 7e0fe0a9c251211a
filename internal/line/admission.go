package line

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// How long is waited for formats.
const (
	// GateLook is how often is looked whether a sink has become one that nobody waits for.
	GateLook = time.Second
	// gatePatience is how long the other sinks of a stream wait for those whose formats cannot encode its records. A
	// registry that restarts is back by then. A gap, which such a sink is given later, costs it more than the wait
	// costs the others.
	gatePatience = 30 * time.Second
)

// grace is the time that a record gives to all formats together which cannot encode it. It begins when there is a sink
// that could be given the stream: before, nobody waits for them. It is pure.
type grace struct{ since time.Time }

// isOver says whether the time is over; gains is that there is such a sink now.
func (g *grace) isOver(now time.Time, gains bool) bool {
	switch {
	case !gains:
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
	}
	return gains && now.Sub(g.since) >= gatePatience
}

// admit returns when the formats of all that want the record can encode it, or nobody waits for that any more, or with
// ctx's error. No room is taken for the record meanwhile: other streams need it.
func (l *Line) admit(ctx context.Context, rec *change.Record, wanted, own uint64) error {
	var grace grace
	for {
		held, changed := l.held(rec, wanted, own)
		if len(held) == 0 {
			return nil
		}
		if grace.isOver(time.Now(), l.IsWanted(rec.Stream)) {
			for _, s := range held {
				s.Gate.Refuse(rec.Stream)
			}
		}
		look := time.NewTimer(GateLook)
		_, err := wait(ctx, changed, look.C)
		look.Stop()
		if err != nil {
			return err
		}
	}
}

// held are the listeners whose formats hold the record up, and when to ask again.
func (l *Line) held(rec *change.Record, wanted, own uint64) (held []*seat, changed <-chan struct{}) {
	for _, s := range l.seats {
		if wanted&s.bit() == 0 || s.Gate == nil {
			continue
		}
		if c := s.Gate.Holds(rec.Stream); c != nil && !l.misses(s, rec, own) {
			held, changed = append(held, s), c
		}
	}
	return held, changed
}

// misses says whether the listener would not be given the record, should it go in line now.
func (l *Line) misses(s *seat, rec *change.Record, own uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams.missing(rec, own)&s.bit() != 0
}

// IsWanted says whether the stream has a sink that can encode its records, and is given them or comes back to them.
func (l *Line) IsWanted(stream *change.Stream) bool {
	for _, s := range l.seats {
		if (s.Wants == nil || s.Wants(stream)) && (s.Gate == nil || s.Gate.Admits(stream)) && l.serves(s, stream) {
			return true
		}
	}
	return false
}

// serves says whether the listener is given the stream's records, or is asked for as one that comes back.
func (l *Line) serves(s *seat, stream *change.Stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.streams.named(stream.String())
	_, returns := p.returns[s.Name]
	return returns || p.away&s.bit() == 0
}
