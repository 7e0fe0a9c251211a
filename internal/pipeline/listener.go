package pipeline

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

// listener carries records from its queue to its sink. It is client-go's processorListener with a bounded queue and an
// acknowledgement.
type listener struct {
	Sink
	index      int // among the stops
	seat       *line.Seat
	clusterUID string
	observer   Observer

	lost  func(mark, plain sink.Mark) error // sees to a full snapshot for this sink, whose mark is to be saved with it
	shape func(rec *change.Record)          // decides whether a record goes on that the listener makes

	// The following belong to the goroutine of open and run.
	mark         sink.Mark
	plain        sink.Mark   // of the opening: the newest that carries nothing
	reader       redo.Reader // of ids in the log
	recovery     line.Recovery
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
	opening  chan openedSink             // what came of opening the sink; nil before that began
	joined   bool                        // that was received; of the goroutine of start, and then of run
	stops    *stops                      // of all sinks
	seldom   *backoff.ExponentialBackOff // how long a sink waits that is stopped
	saved    atomic.Pointer[sink.Mark]   // the mark that is saved: where a crash would find the sink; nil before the first
	known    *sink.Mark                  // the one that the sink was told is saved
	compared atomic.Bool                 // what the log holds is known
	partly   atomic.Bool                 // it has not joined, and misses some of its streams

	mu      sync.Mutex // guards the following
	backlog *fifo.Backlog
	cut     context.CancelFunc // ends run without delivering what is left; nil before it runs, and when it was called
	halted  bool               // the sink is stopped
	leaving bool               // it is to leave the line
	away    bool               // it has left the line
	gone    chan struct{}      // closed when it leaves
	freed   chan struct{}      // closed and made anew when room was freed
	ready   chan struct{}      // buffered 1: there is something to take, or nothing more will come
}

func newListener(index int, s Sink, config *Config) *listener {
	// What the log holds of streams that the sink does not take is noted as missed.
	taken := slices.DeleteFunc(config.streams(), func(stream change.Stream) bool { return s.Wants != nil && !s.Wants(&stream) })
	l := &listener{
		Sink: s, index: index, clusterUID: config.ClusterUID, observer: config.Observer,
		reader:   readerOf(config),
		recovery: line.Recovery{Log: redo.NewLog(taken, s.Coalesce)},
		store:    config.Store, reshape: config.Reshape, seldom: retrySeldom(),
		backlog: fifo.NewBacklog(fifo.Options{
			Queue: s.Queue, Coalesce: s.Coalesce, Spool: s.Spool, Batch: line.BatchLimit(),
		}),
		freed: make(chan struct{}), gone: make(chan struct{}),
		ready: make(chan struct{}, 1),
	}
	return l
}

// use uses the backlog, and then tells whom that concerns.
func (l *listener) use(do func(b *fifo.Backlog)) {
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
func query[T any](l *listener, what func(*fifo.Backlog) T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return what(l.backlog)
}

// takes says whether the sink takes the stream's records.
func (l *listener) takes(stream *change.Stream) bool { return l.Wants == nil || l.Wants(stream) }

// reserve waits for room in the queue. It blocks while the queue is full: the watch is the back-pressure. Where the
// sink spools, the committer makes room.
func (l *listener) reserve(ctx context.Context, rec *change.Record) error {
	for {
		reserved, freed, spills := l.tryReserve(rec)
		if reserved {
			return nil
		}
		var again <-chan time.Time
		if spills {
			l.seat.Wake()
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
func (l *listener) tryReserve(rec *change.Record) (reserved bool, freed <-chan struct{}, spills bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backlog.Reserve(rec) {
		return true, nil, false
	}
	if l.away {
		l.backlog.Overdraw(rec.Size())
		return true, nil, false
	}
	spills = l.backlog.StartSpill()
	l.burdens()
	return false, l.freed, spills
}

// mayKnow says whether an earlier process may have written what comes now: the sink's log was not read yet, or holds
// records of the stream that are to come again.
func (l *listener) mayKnow(stream *change.Stream) bool {
	if !l.compared.Load() {
		return true
	}
	expects := false
	l.recovery.With(func(r *line.Recovery) { expects = r.Log.Expects(stream.String()) })
	return expects
}

// finish says that nothing more will be pushed: run returns when the queue is empty.
func (l *listener) finish() {
	l.use(func(b *fifo.Backlog) {
		b.Finish()
		switch {
		case (l.cut == nil || l.halted) && b.CanSpill(), l.Coalesce && b.Behind(): // what is queued need not be read again
			b.StartSpill() // its sink never opened, or does not take what comes before
			l.seat.Wake()
		case l.halted && l.cut != nil: // nobody will take what is queued
			l.cut()
			l.cut = nil
		}
	})
}

// take returns what is next, up to the batch limit, and waits only while there is nothing: a busy sink gets large
// batches by itself, an idle one a batch of one at once. It returns nothing when there will be nothing more in the
// queue: what is on disk then is for the next process.
func (l *listener) take(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	for {
		var turn fifo.Turn
		l.use(func(b *fifo.Backlog) { turn, batch = b.Take(batch) })
		switch turn {
		case fifo.Over:
			return nil, nil
		case fifo.Memory:
			return batch, nil
		case fifo.Disk:
			if records, err := l.takeSpooled(); err != nil || len(records) > 0 {
				return records, err
			}
			continue // nothing that the sink still takes
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// acknowledged tells the line that the sink has the records, some of those taken, and the mark that may be saved then.
func (l *listener) acknowledged(batch []*change.Record, mark sink.Mark) error {
	return l.seat.Ack(batch, mark)
}
