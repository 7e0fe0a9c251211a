package pipeline

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxBehind is how many records of a stream may be under way when it is resynced. The list waits for them while the
// watch stands still, so a stream that is further behind is resynced later.
const maxBehind = 1024

// postponement is the longest time after which a stream that was behind is looked at again.
const postponement = 10 * time.Second

// resyncer asks for the periodic resyncs: ShouldResync of client-go's listeners, as a clock of its own.
type resyncer struct {
	*participants
	changed chan struct{}                  // buffered 1: there are other turns
	held    func(sink, stream string) bool // says whether a resync is paused
	turns   []*resyncTurn                  // guarded by sourceMu
}

// resyncTurn is one stream and the sinks that want it at the same times.
type resyncTurn struct {
	source Source
	owed   []change.Owed
	period time.Duration
	next   time.Time // written by run alone
}

func newResyncer(c *participants) *resyncer {
	resync := &resyncer{participants: c, changed: make(chan struct{}, 1), held: func(string, string) bool { return false }}
	for _, s := range c.Sources {
		resync.join(s)
	}
	return resync
}

// join spreads the streams over the second half of their first period, so that they are not all listed at once; sinks
// of the same period share the times of a stream, and so its lists. The caller holds sourceMu, unless nobody else has
// the participants yet.
func (r *resyncer) join(s Source) {
	fraction := 0.5 + rand.Float64()/2
	byPeriod := map[time.Duration][]change.Owed{}
	for _, l := range r.listeners {
		if l.Resync > 0 && l.Takes(&s.Stream) {
			byPeriod[l.Resync] = append(byPeriod[l.Resync], change.Owed{Sink: l.Name, Reason: change.Resync})
		}
	}
	for period, owed := range byPeriod {
		first := time.Now().Add(time.Duration(fraction * float64(period)))
		r.turns = append(r.turns, &resyncTurn{source: s, owed: owed, period: period, next: first})
	}
	r.signal()
}

// leave forgets the stream; the caller holds sourceMu.
func (r *resyncer) leave(stream string) {
	r.turns = slices.DeleteFunc(r.turns, func(t *resyncTurn) bool { return t.source.Stream.String() == stream })
	r.signal()
}

// signal makes run look again.
func (r *resyncer) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run asks until ctx ends.
func (r *resyncer) run(ctx context.Context) {
	for ctx.Err() == nil {
		turn := r.first()
		if turn == nil {
			select {
			case <-r.changed:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(time.Until(turn.next))
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-timer.C:
			r.take(turn)
		}
		timer.Stop()
	}
}

// first is the turn that is due first, nil where there is none.
func (r *resyncer) first() *resyncTurn {
	r.sourceMu.Lock()
	defer r.sourceMu.Unlock()
	var first *resyncTurn
	for _, turn := range r.turns {
		if first == nil || turn.next.Before(first.next) {
			first = turn
		}
	}
	return first
}

// take asks the stream, unless it is behind. A stream that was late keeps its distance to the next time.
func (r *resyncer) take(turn *resyncTurn) {
	if r.line.Behind(turn.source.Stream) > maxBehind {
		turn.next = time.Now().Add(min(turn.period/8, postponement))
		return
	}
	turn.next = time.Now().Add(turn.period)
	stream := turn.source.Stream.String()
	owed := slices.DeleteFunc(slices.Clone(turn.owed), func(o change.Owed) bool { return !r.reaches(o.Sink, stream) || r.held(o.Sink, stream) })
	if len(owed) > 0 {
		turn.source.Request(owed...)
	}
}

// reaches says whether the sink is given the stream's records.
func (r *resyncer) reaches(sinkName, stream string) bool {
	return slices.ContainsFunc(r.listeners, func(l *listener) bool { return l.Name == sinkName && l.Seat.Reaches(stream) })
}
