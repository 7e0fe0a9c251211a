package pipeline

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxBehind is how many records of a stream may be under way when it is resynced. The list waits for them while the
// watch stands still, so a stream that is further behind is resynced later.
const maxBehind = 1024

// postponement is the longest time after which a stream that was behind is looked at again.
const postponement = 10 * time.Second

// resyncer asks for the periodic resyncs: ShouldResync of client-go's listeners, as a clock of its own. It is used by one
// goroutine.
type resyncer struct {
	line  *Line
	turns []resyncTurn
}

// resyncTurn is one stream and the sinks that want it at the same times.
type resyncTurn struct {
	source Source
	owed   []change.Owed
	period time.Duration
	next   time.Time
}

// newResyncer spreads the streams over the second half of their first period, so that they are not all listed at once;
// sinks of the same period share the times of a stream, and so its lists.
func newResyncer(r *run) *resyncer {
	resync := &resyncer{line: r.line}
	start := time.Now()
	for _, s := range r.Sources {
		fraction := 0.5 + rand.Float64()/2
		byPeriod := map[time.Duration][]change.Owed{}
		for _, l := range r.listeners {
			if l.Resync > 0 && l.takes(&s.Stream) {
				byPeriod[l.Resync] = append(byPeriod[l.Resync], change.Owed{Sink: l.Name, Reason: change.Resync})
			}
		}
		for period, owed := range byPeriod {
			first := start.Add(time.Duration(fraction * float64(period)))
			resync.turns = append(resync.turns, resyncTurn{source: s, owed: owed, period: period, next: first})
		}
	}
	return resync
}

// run asks until ctx ends.
func (r *resyncer) run(ctx context.Context) {
	for {
		turn := r.first()
		if turn == nil {
			return
		}
		timer := time.NewTimer(time.Until(turn.next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			r.take(turn)
		}
	}
}

// first is the turn that is due first, nil where there is none.
func (r *resyncer) first() *resyncTurn {
	var first *resyncTurn
	for i := range r.turns {
		if first == nil || r.turns[i].next.Before(first.next) {
			first = &r.turns[i]
		}
	}
	return first
}

// take asks the stream, unless it is behind. A stream that was late keeps its distance to the next time.
func (r *resyncer) take(turn *resyncTurn) {
	if r.line.behind(turn.source.Stream) > maxBehind {
		turn.next = time.Now().Add(min(turn.period/8, postponement))
		return
	}
	turn.next = time.Now().Add(turn.period)
	turn.source.Request(turn.owed...)
}
