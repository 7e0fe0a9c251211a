package delivery

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Listener carries records from its queue to its sink. It is client-go's processorListener with a bounded queue and an
// acknowledgement.
type Listener struct {
	Sink
	Index      int // among the stops
	Seat       *line.Seat
	clusterUID string
	observer   Observer

	lost  func(sinkName string, mark, plain sink.Mark) error
	shape func(rec *change.Record) // decides whether a record goes on that the listener makes

	// The following belong to the goroutine of open and run.
	mark         sink.Mark
	plain        sink.Mark   // of the opening: the newest that carries nothing
	reader       redo.Reader // of ids in the log
	Recovery     line.Recovery
	heldBehind   []checkpoint.Held   // what the log of a sink that comes back holds behind the mark
	unread       []checkpoint.Held   // what the log holds behind the mark of streams that are not configured
	leftOut      map[string]bool     // streams that are not configured, and of which something on disk was left out
	spooledFirst []*change.Record    // those on disk that an earlier process may have delivered
	opened       bool                // in this process
	retried      map[string]struct{} // ids of the batch that failed, and that the log holds all the same
	messages     []sink.Message
	ends         []int // by record of the batch: how many messages it ends after
	trimming     trimming
	patience     patience // with the sink

	store    *checkpoint.Store
	reshape  func(*change.Record) error  // nil leaves what comes from disk as it is
	stops    *Stops                      // of all sinks
	seldom   *backoff.ExponentialBackOff // how long a sink waits that is stopped
	saved    atomic.Pointer[sink.Mark]   // the mark that is saved: where a crash would find the sink; nil before the first
	known    *sink.Mark                  // the one that the sink was told is saved
	compared atomic.Bool                 // what the log holds is known

	mu      sync.Mutex // guards the following
	backlog *fifo.Backlog
	cut     context.CancelFunc // ends run without delivering what is left; nil before it runs, and when it was called
	state   state
	gone    chan struct{} // closed when it leaves
	freed   chan struct{} // closed and made anew when room was freed
	ready   chan struct{} // buffered 1: there is something to take, or nothing more will come
}

// Config is what the listeners of a run have in common.
type Config struct {
	ClusterUID string
	Streams    []change.Stream // of the run
	Store      *checkpoint.Store
	Reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Observer   Observer
	Stops      *Stops
	// Lost sees to a full snapshot for a sink whose log has lost records, and whose marks are to be saved with it.
	Lost func(sinkName string, mark, plain sink.Mark) error
	// Shape decides whether a record goes on that a listener makes.
	Shape func(rec *change.Record)
}

// New makes the listener of the sink, which is counted among the stops.
func New(index int, s Sink, config *Config) *Listener {
	// What the log holds of streams that the sink does not take is noted as missed.
	taken := slices.DeleteFunc(slices.Clone(config.Streams), func(stream change.Stream) bool { return s.Wants != nil && !s.Wants(&stream) })
	l := &Listener{
		Sink: s, Index: index, clusterUID: config.ClusterUID, observer: config.Observer,
		reader:   readerOf(config.Store, config.ClusterUID),
		Recovery: line.Recovery{Log: redo.NewLog(taken, s.Coalesce)},
		store:    config.Store, reshape: config.Reshape, seldom: retrySeldom(),
		lost: config.Lost, shape: config.Shape, stops: config.Stops,
		backlog: fifo.NewBacklog(fifo.Options{
			Queue: s.Queue, Coalesce: s.Coalesce, Spool: s.Spool, Batch: line.BatchLimit(),
		}),
		freed: make(chan struct{}), gone: make(chan struct{}),
		ready: make(chan struct{}, 1),
	}
	return l
}

// use uses the backlog, and then tells whom that concerns.
func (l *Listener) use(do func(b *fifo.Backlog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.backlog)
	signals := l.backlog.Signals()
	if signals.Freed {
		close(l.freed)
		l.freed = make(chan struct{})
	}
	if signals.Ready {
		select {
		case l.ready <- struct{}{}:
		default:
		}
	}
	if signals.Changed {
		l.observer.Queued(l.Name, l.backlog.Levels())
	}
	if l.cut != nil && l.backlog.Rests() {
		time.AfterFunc(stopGrace, l.cut)
		l.cut = nil
	}
}

// stopGrace is how long a write may go on after a stop when all that it writes is on disk, too: the next start
// continues there.
const stopGrace = time.Second

// query asks the listener's backlog.
func query[T any](l *Listener, what func(*fifo.Backlog) T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return what(l.backlog)
}

// Takes says whether the sink takes the stream's records.
func (l *Listener) Takes(stream *change.Stream) bool { return l.Wants == nil || l.Wants(stream) }

// reserve waits for room in the queue. It blocks while the queue is full: the watch is the back-pressure. Where the
// sink spools, the committer makes room.
func (l *Listener) reserve(ctx context.Context, rec *change.Record) error {
	for {
		reserved, freed, spills := l.tryReserve(rec)
		if reserved {
			return nil
		}
		var again <-chan time.Time
		if spills {
			l.Seat.Wake()
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
func (l *Listener) tryReserve(rec *change.Record) (reserved bool, freed <-chan struct{}, spills bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backlog.Reserve(rec) {
		return true, nil, false
	}
	if l.state.away {
		l.backlog.Overdraw(rec.Size())
		return true, nil, false
	}
	spills = l.backlog.StartSpill()
	l.burdens()
	return false, l.freed, spills
}

// mayKnow says whether an earlier process may have written what comes now: the sink's log was not read yet, or holds
// records of the stream that are to come again.
func (l *Listener) mayKnow(stream *change.Stream) bool {
	if !l.compared.Load() {
		return true
	}
	expects := false
	l.Recovery.With(func(r *line.Recovery) { expects = r.Log.Expects(stream.String()) })
	return expects
}

// Finish says that nothing more will be pushed: run returns when the queue is empty.
func (l *Listener) Finish() {
	l.use(func(b *fifo.Backlog) {
		b.Finish()
		switch {
		case (l.cut == nil || l.state.halted) && b.CanSpill(), l.Coalesce && b.Behind(): // what is queued need not be read again
			b.StartSpill() // its sink never opened, or does not take what comes before
			l.Seat.Wake()
		case l.state.halted && l.cut != nil: // nobody will take what is queued
			l.cut()
			l.cut = nil
		}
	})
}

// burdens makes the sink leave if it is stopped and cannot be spooled for, though somebody waits; the caller holds mu.
func (l *Listener) burdens() {
	if !l.backlog.IsFinished() && !l.backlog.MaySpill() && l.state.burden() {
		l.Seat.Wake()
	}
}

// is asks for the listener's state.
func (l *Listener) is(what func(state) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return what(l.state)
}

// IsAway says whether the sink is not in line.
func (l *Listener) IsAway() bool { return l.is(func(s state) bool { return s.away }) }

// IsLeaving says whether the sink is to leave.
func (l *Listener) IsLeaving() bool { return l.is(func(s state) bool { return s.leaving && !s.away }) }

// IsPartly says whether the sink has not joined, and misses some of its streams.
func (l *Listener) IsPartly() bool { return l.is(func(s state) bool { return s.partly }) }

// IsJoined says whether what came of opening the sink is known and seen to.
func (l *Listener) IsJoined() bool { return l.is(func(s state) bool { return s.joined }) }

// Misses says whether the sink is absent from any of its streams.
func (l *Listener) Misses() bool { return l.is(state.misses) }

// Join notes that what came of opening the sink is known.
func (l *Listener) Join() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.joined = true
}

// BeginAbsent notes what the sink misses when the run begins: all its streams, or some.
func (l *Listener) BeginAbsent(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.miss(all)
}

// Unsaved is the number of records that were pushed and are neither acknowledged nor on disk.
func (l *Listener) Unsaved() int { return query(l, (*fifo.Backlog).Unsaved) }

// IsBehind says whether records on disk, or on their way there, are not delivered.
func (l *Listener) IsBehind() bool { return query(l, (*fifo.Backlog).Behind) }
