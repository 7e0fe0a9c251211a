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

	mu       sync.Mutex // guards the following
	spool    spool
	cut      context.CancelFunc // ends run without delivering what is left; nil before it runs, and when it was called
	queue    *fifo.Queue
	taken    []*change.Record // from the queue, and not acknowledged yet
	finished bool             // nothing more will be pushed
	halted   bool             // the sink is stopped
	leaving  bool             // it is to leave the line
	away     bool             // it has left the line
	gone     chan struct{}    // closed when it leaves
	freed    chan struct{}    // closed and made anew when room was freed
	ready    chan struct{}    // buffered 1: there is something to take, or nothing more will come
}

func newListener(index int, s Sink, config *Config) *listener {
	// What the log holds of streams that the sink does not take is noted as missed.
	taken := slices.DeleteFunc(config.streams(), func(stream change.Stream) bool { return s.Wants != nil && !s.Wants(&stream) })
	l := &listener{
		Sink: s, index: index, clusterUID: config.ClusterUID, observer: config.Observer,
		reader:   readerOf(config),
		recovery: line.Recovery{Log: redo.NewLog(taken, s.Coalesce)},
		store:    config.Store, reshape: config.Reshape, seldom: retrySeldom(),
		spool: newSpool(&s),
		queue: newQueue(&s),
		freed: make(chan struct{}), gone: make(chan struct{}),
		ready: make(chan struct{}, 1),
	}
	return l
}

func newQueue(s *Sink) *fifo.Queue {
	if s.Coalesce {
		return fifo.NewCoalescing(s.Queue)
	}
	return fifo.NewQueue(s.Queue)
}

// takes says whether the sink takes the stream's records.
func (l *listener) takes(stream *change.Stream) bool { return l.Wants == nil || l.Wants(stream) }

// reserve waits for room in the queue. It blocks while the queue is full: the watch is the back-pressure. Where the
// sink spools, the committer makes room.
func (l *listener) reserve(ctx context.Context, rec *change.Record) error {
	for {
		l.mu.Lock()
		if l.queue.ReserveFor(rec) {
			l.mu.Unlock()
			return nil
		}
		if l.spool.overcommits || l.away {
			l.queue.Overdraw(rec.Size())
			l.mu.Unlock()
			return nil
		}
		freed := l.freed
		spools := l.spool.start()
		l.burdens()
		l.mu.Unlock()
		var again <-chan time.Time
		if spools {
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

func (l *listener) cancel(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Cancel(size)
	l.signalFreed()
}

// signalFreed wakes all who wait for room; the caller holds mu.
func (l *listener) signalFreed() {
	close(l.freed)
	l.freed = make(chan struct{})
}

// push queues the record. It returns those that it has made superfluous, and whether the queue goes to disk.
func (l *listener) push(rec *change.Record) (merged []*change.Record, spools bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	merged = l.queue.Push(rec, l.Coalesce && l.mayKnow(rec.Stream))
	l.spool.trigger.newest = rec.Seq
	l.observe()
	l.signalReady()
	return merged, l.spool.active
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	if (l.cut == nil || l.halted) && l.spool.limit > 0 || l.spool.trigger.merges && l.spool.behind() { // what is queued need not be read again
		l.spool.start() // its sink never opened, or does not take what comes before
		l.seat.Wake()
	} else if l.halted && l.cut != nil { // nobody will take what is queued
		l.cut()
		l.cut = nil
	}
	l.signalReady()
	l.leaveRest()
}

// signalReady wakes the listener's goroutine; the caller holds mu.
func (l *listener) signalReady() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// observe reports the queue; the caller holds mu.
func (l *listener) observe() {
	backlog := Backlog{
		Records: len(l.taken) + l.queue.Len(), Bytes: l.queue.Used().Bytes, Oldest: l.oldest(),
		SpoolRecords: l.spool.saved.Records() - l.spool.gone.records, SpoolBytes: l.spool.saved.Bytes() - l.spool.gone.bytes,
	}
	if l.spool.flight != nil {
		backlog.Records = l.queue.Len()
	}
	l.observer.Queued(l.Name, backlog)
}

// take returns what is next, up to the batch limit, and waits only while there is nothing: a busy sink gets large
// batches by itself, an idle one a batch of one at once. What is on disk comes before what is queued. It returns
// nothing when there will be nothing more in the queue: what is on disk then is for the next process.
func (l *listener) take(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	for {
		l.mu.Lock()
		var behind, readable bool
		if behind = l.spool.behind(); behind {
			readable = l.spool.readable()
		} else {
			batch = l.pop(batch[:0])
		}
		over := l.finished && l.queue.Len() == 0 && (behind || len(batch) == 0)
		l.mu.Unlock()
		switch {
		case over:
			return nil, nil
		case readable:
			if records, err := l.takeSpooled(); err != nil || len(records) > 0 {
				return records, err
			}
			continue // nothing that the sink still takes
		case !behind && len(batch) > 0:
			return batch, nil
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// pop takes from the queue; the caller holds mu.
func (l *listener) pop(batch []*change.Record) []*change.Record {
	batch = l.queue.Pop(batch, line.BatchLimit())
	l.taken = append(l.taken[:0], batch...)
	if len(batch) > 0 {
		l.signalFreed()
		l.observe()
	}
	return batch
}

// acknowledged tells the line that the sink has the records, some of those taken, and the mark that may be saved then.
func (l *listener) acknowledged(batch []*change.Record, mark sink.Mark) error {
	return l.seat.Ack(batch, mark)
}

// left is the number of records that were pushed and are neither acknowledged nor on disk.
func (l *listener) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved()
}
