package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
)

// intake is what waits for a sink, and where the sink is in its life: the backlog under its lock, with the channels of
// those who wait for it.
type intake struct {
	Sink
	Seat     *line.Seat
	observer Observer

	mu      sync.Mutex // guards the following
	backlog *fifo.Backlog
	cut     context.CancelFunc // ends run without delivering what is left; nil before it runs, and when it was called
	state   state
	gone    chan struct{}            // closed when it leaves
	freed   chan struct{}            // closed and made anew when room was freed
	ready   chan struct{}            // buffered 1: there is something to take, or nothing more will come
	refused map[string]change.Stream // by name: those that wait for the sink's format
}

func newIntake(s Sink, observer Observer) intake {
	return intake{
		Sink: s, observer: observer,
		backlog: fifo.NewBacklog(fifo.Options{Queue: s.Queue, Coalesce: s.Coalesce, Spool: s.Spool, Batch: line.BatchLimit()}),
		freed:   make(chan struct{}), gone: make(chan struct{}), ready: make(chan struct{}, 1),
	}
}

// use uses the backlog, and then tells whom that concerns.
func (i *intake) use(do func(b *fifo.Backlog)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do(i.backlog)
	signals := i.backlog.Signals()
	if signals.Freed {
		close(i.freed)
		i.freed = make(chan struct{})
	}
	if signals.Ready {
		select {
		case i.ready <- struct{}{}:
		default:
		}
	}
	if signals.Changed {
		i.observer.Queued(i.Name, i.backlog.Levels())
	}
	if i.cut != nil && i.backlog.Rests() {
		time.AfterFunc(stopGrace, i.cut)
		i.cut = nil
	}
}

// stopGrace is how long a write may go on after a stop when all that it writes is on disk, too: the next start
// continues there.
const stopGrace = time.Second

// query asks the backlog.
func query[T any](i *intake, what func(*fifo.Backlog) T) T {
	i.mu.Lock()
	defer i.mu.Unlock()
	return what(i.backlog)
}

// Takes says whether the sink takes the stream's records.
func (i *intake) Takes(stream *change.Stream) bool { return i.Wants == nil || i.Wants(stream) }

// reserve waits for room in the queue. It blocks while the queue is full: the watch is the back-pressure. Where the
// sink spools, the committer makes room.
func (i *intake) reserve(ctx context.Context, rec *change.Record) error {
	for {
		reserved, freed, spills := i.tryReserve(rec)
		if reserved {
			return nil
		}
		var again <-chan time.Time
		if spills {
			i.Seat.Wake()
			again = time.After(line.OvercommitAfter)
		}
		select {
		case <-freed:
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryReserve takes room in the queue. Where there is none it says who tells of it, and whether the queue goes to disk.
func (i *intake) tryReserve(rec *change.Record) (reserved bool, freed <-chan struct{}, spills bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.backlog.Reserve(rec) {
		return true, nil, false
	}
	if i.state.away {
		i.backlog.Overdraw(rec.Size())
		return true, nil, false
	}
	spills = i.backlog.StartSpill()
	i.burdens()
	return false, i.freed, spills
}

// Finish says that nothing more will be pushed: run returns when the queue is empty.
func (i *intake) Finish() {
	i.use(func(b *fifo.Backlog) {
		b.Finish()
		switch {
		case (i.cut == nil || i.state.halted) && b.CanSpill(), i.Coalesce && b.Behind(): // what is queued need not be read again
			b.StartSpill() // its sink never opened, or does not take what comes before
			i.Seat.Wake()
		case i.state.halted && i.cut != nil: // nobody will take what is queued
			i.cut()
			i.cut = nil
		}
	})
}

// burdens makes the sink leave if it is stopped and cannot be spooled for, though somebody waits; the caller holds mu.
func (i *intake) burdens() {
	if !i.backlog.IsFinished() && !i.backlog.MaySpill() && i.state.burden() {
		i.Seat.Wake()
	}
}

// is asks for the listener's state.
func (i *intake) is(what func(state) bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return what(i.state)
}

// IsAway says whether the sink is not in line.
func (i *intake) IsAway() bool { return i.is(func(s state) bool { return s.away }) }

// IsLeaving says whether the sink is to leave.
func (i *intake) IsLeaving() bool { return i.is(func(s state) bool { return s.leaving && !s.away }) }

// IsPartly says whether the sink has not joined, and misses some of its streams.
func (i *intake) IsPartly() bool { return i.is(func(s state) bool { return s.partly }) }

// IsJoined says whether what came of opening the sink is known and seen to.
func (i *intake) IsJoined() bool { return i.is(func(s state) bool { return s.joined }) }

// Misses says whether the sink is absent from any of its streams.
func (i *intake) Misses() bool { return i.is(state.misses) }

// Join notes that what came of opening the sink is known.
func (i *intake) Join() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.joined = true
}

// BeginAbsent notes what the sink misses when the run begins: all its streams, or some.
func (i *intake) BeginAbsent(all bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.miss(all)
}

// Unsaved is the number of records that were pushed and are neither acknowledged nor on disk.
func (i *intake) Unsaved() int { return query(i, (*fifo.Backlog).Unsaved) }

// IsBehind says whether records on disk, or on their way there, are not delivered.
func (i *intake) IsBehind() bool { return query(i, (*fifo.Backlog).Behind) }

// heldFor is the age of the oldest record at which a sink that is stopped leaves, though there is room: positions
// must move on well before the API server's history ends, after five minutes by default.
const heldFor = 2 * time.Minute

// burdensByAge is burdens for whoever does not wait yet.
func (i *intake) burdensByAge() {
	i.use(func(b *fifo.Backlog) {
		if oldest := b.OldestUnsaved(); !oldest.IsZero() && time.Since(oldest) > heldFor {
			b.StartSpill()
			i.burdens()
		}
	})
}

// setHalted notes whether the sink is stopped. It is false where the run ends already, and nothing is spooled: nobody
// waits then.
func (i *intake) setHalted(halted bool) (goesOn bool) {
	i.use(func(b *fifo.Backlog) {
		i.state.halted = halted
		if b.IsFinished() && b.StartSpill() {
			i.Seat.Wake()
		}
		goesOn = !b.IsFinished() || b.CanSpill()
	})
	return goesOn
}

// Dismiss empties the queue, and returns the letters that waited in it. What is on disk stays there.
func (i *intake) Dismiss() (replays []*change.Record) {
	i.use(func(b *fifo.Backlog) {
		replays = slices.DeleteFunc(b.Dismiss(), func(rec *change.Record) bool { return rec.Replay == nil })
		i.state.left()
		close(i.gone)
	})
	return replays
}

// Rejoin notes that the sink is open again. Each stream gives it what it has missed.
func (i *intake) Rejoin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.rejoin()
	i.gone = make(chan struct{})
}

// SavingSpool is what the state is to have of the spool with the chunks, which of them it still needs, and whether that
// is another one than it has.
func (i *intake) SavingSpool(chunks []fifo.Chunk) (extent fifo.Spool, kept []fifo.Chunk, changed bool) {
	i.use(func(b *fifo.Backlog) { extent, kept, changed = b.Saving(chunks) })
	return extent, kept, changed
}

// SpoolSaved notes that the state has the extent, with the chunks.
func (i *intake) SpoolSaved(extent fifo.Spool, chunks []fifo.Chunk) {
	i.use(func(b *fifo.Backlog) { b.Saved(extent, chunks) })
}
