package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// batchLimit bounds one Write: large enough to amortise a sync, small enough that a sink's memory stays small beside
// its queue.
func batchLimit() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: 2048} }

// listener carries records from its queue to its sink. It is client-go's processorListener with a bounded queue and an
// acknowledgement.
type listener struct {
	Sink
	index      int // in the line's masks
	line       *Line
	clusterUID string
	observer   Observer

	lost func(mark sink.Mark) error // sees to a full snapshot for this sink, whose mark is to be saved with it

	// The following belong to the goroutine of open and run.
	mark      sink.Mark
	delivered deliveredSet
	opened    bool                // in this process
	retried   map[string]struct{} // ids of the batch that failed, and that the log holds all the same
	messages  []sink.Message
	ends      []int // by record of the batch: how many messages it ends after

	mu       sync.Mutex // guards the following
	queue    *fifo.Queue
	taken    []*change.Record // from the queue, and not acknowledged yet
	finished bool             // nothing more will be pushed
	freed    chan struct{}    // closed and made anew when room was freed
	ready    chan struct{}    // buffered 1: there is something to take, or nothing more will come
}

func newListener(index int, s Sink, config *Config) *listener {
	return &listener{
		Sink: s, index: index, clusterUID: config.ClusterUID, observer: config.Observer,
		delivered: deliveredSet{streams: config.streams(), ledger: ledger{config.Store}, foreign: foreign(s.Shared, config.ClusterUID)},
		queue:     fifo.NewQueue(s.Queue),
		freed:     make(chan struct{}),
		ready:     make(chan struct{}, 1),
	}
}

// wants says whether the record is for this listener's sink.
func (l *listener) wants(rec *change.Record) bool {
	if rec.Sink != "" && rec.Sink != l.Name {
		return false
	}
	return l.takes(rec.Stream)
}

// takes says whether the sink takes the stream's records.
func (l *listener) takes(stream *change.Stream) bool { return l.Wants == nil || l.Wants(stream) }

// reserve waits for room in the queue. It blocks while the queue is full: the watch is the back-pressure.
func (l *listener) reserve(ctx context.Context, size int) error {
	for {
		l.mu.Lock()
		if l.queue.Reserve(size) {
			l.mu.Unlock()
			return nil
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
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

func (l *listener) push(rec *change.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Push(rec)
	l.observe()
	l.signalReady()
}

// finish says that nothing more will be pushed: run returns when the queue is empty.
func (l *listener) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	l.signalReady()
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
	backlog := Backlog{Records: len(l.taken) + l.queue.Len(), Bytes: l.queue.Used().Bytes}
	if len(l.taken) > 0 {
		backlog.Oldest = l.taken[0].Received
	} else if oldest := l.queue.Oldest(); oldest != nil {
		backlog.Oldest = oldest.Received
	}
	l.observer.Queued(l.Name, backlog)
}

// take returns what is queued, up to the batch limit, and waits only while there is nothing: a busy sink gets large
// batches by itself, an idle one a batch of one at once. It returns nothing when there will be nothing more.
func (l *listener) take(ctx context.Context, batch []*change.Record) []*change.Record {
	for {
		l.mu.Lock()
		batch = l.queue.Pop(batch[:0], batchLimit())
		l.taken = append(l.taken[:0], batch...)
		finished := l.finished
		if len(batch) > 0 {
			l.signalFreed()
			l.observe()
		}
		l.mu.Unlock()
		if len(batch) > 0 || finished {
			return batch
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil
		}
	}
}

// acknowledged tells the line that the sink has the records, some of those taken, and the mark that may be saved then.
func (l *listener) acknowledged(batch []*change.Record, mark sink.Mark) error {
	if err := l.line.ack(l.index, batch, mark); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = l.taken[len(batch):]
	l.observe()
	return nil
}

// left is the number of records that were pushed and are not acknowledged.
func (l *listener) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len() + len(l.taken)
}

// run delivers until there is nothing more or ctx ends. It returns nil then, and an error only where no retry helps.
func (l *listener) run(ctx context.Context) error {
	var batch []*change.Record
	for {
		if batch = l.take(ctx, batch); len(batch) == 0 {
			return nil
		}
		if err := l.deliver(ctx, batch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("deliver to sink %s: %w", l.Name, err)
		}
		clear(batch) // the records are free
	}
}

// deliver brings the whole batch into the sink, whatever it takes. Each record is compared once with what an earlier process
// left in the sink's log, and after a failed write with what that has left there.
func (l *listener) deliver(ctx context.Context, batch []*change.Record) error {
	batch, err := l.skip(batch, l.isDelivered)
	for err == nil && len(batch) > 0 {
		if batch, err = l.write(ctx, batch); err == nil {
			batch, err = l.skip(batch, l.isRetried)
		}
	}
	return err
}

// skip acknowledges the records that the sink's log holds already, and returns the others.
func (l *listener) skip(batch []*change.Record, isHeld func(*change.Record) bool) ([]*change.Record, error) {
	if l.delivered.empty() && len(l.retried) == 0 {
		return batch, nil
	}
	if len(batch) > 0 {
		l.line.compare(l.index, batch[len(batch)-1].Seq)
	}
	var known, fresh []*change.Record
	for _, rec := range batch {
		if isHeld(rec) {
			known = append(known, rec)
		} else {
			fresh = append(fresh, rec)
		}
	}
	return fresh, l.acknowledged(known, "")
}

// isDelivered says whether an earlier process wrote the record, in whatever shape.
func (l *listener) isDelivered(rec *change.Record) bool { return l.delivered.take(rec, l.clusterUID) }

// isRetried says whether the record is one of a failed batch that the log holds.
func (l *listener) isRetried(rec *change.Record) bool {
	if len(l.retried) == 0 {
		return false
	}
	id := rec.ID(l.clusterUID).String()
	_, found := l.retried[id]
	delete(l.retried, id)
	return found
}

// open opens the sink at the mark and remembers what its log holds behind it. A sink without a mark gets one before its
// first record, so that a crash after that record finds it. After a *sink.LostError the sink is open.
func (l *listener) open(ctx context.Context, mark sink.Mark) error {
	ids, err := l.Target.Open(ctx, mark)
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	l.mark = mark
	if mark == "" || lost != nil {
		var markErr error
		if l.mark, markErr = l.Target.Write(ctx, nil); markErr != nil {
			return fmt.Errorf("read the mark: %w", markErr)
		}
	}
	if err := l.remember(ids); err != nil {
		return err
	}
	l.observer.Opened(l.Name, len(ids))
	return err
}

// remember notes what the log holds behind the mark. At first these are an earlier process' records, which come again in
// whatever shape; after that they are this one's last batch, which is tried again as it is.
func (l *listener) remember(ids []string) error {
	if !l.opened {
		l.opened = true
		return l.delivered.add(ids)
	}
	l.retried = make(map[string]struct{}, len(ids))
	for _, id := range ids {
		l.retried[id] = struct{}{}
	}
	return nil
}

// reopen opens the sink again at the last mark, after an error that the sink could not mend, for as long as ctx lives.
func (l *listener) reopen(ctx context.Context) error {
	var lost *sink.LostError
	again := func() error {
		if lost != nil {
			return l.makeGood(ctx)
		}
		err := l.Target.Close(ctx)
		if err == nil {
			err = l.open(ctx, l.mark)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if isPermanent(err) {
			return backoff.Permanent(err)
		}
		l.observer.Failed(l.Name, err)
		if errors.As(err, &lost) {
			return l.makeGood(ctx)
		}
		return err
	}
	return backoff.Retry(again, backoff.WithContext(retryForever(), ctx))
}

// makeGood is the answer to a log that lost records while running. The saved mark stays, if the log still reaches it. If it
// does not, it goes back to the log's end: were it to stay, the log could grow to it again, and a crash would find nothing
// behind it. It never goes forward, since what lies between may not be saved.
func (l *listener) makeGood(ctx context.Context) error {
	end, saved := l.mark, l.line.savedMark(l.index)
	ids, err := l.Target.Open(ctx, saved)
	var lost *sink.LostError
	mark := saved
	switch {
	case errors.As(err, &lost):
		mark = end
	case err != nil:
		return err
	}
	l.delivered.clear() // what it has of the log may be what was lost
	if err := l.delivered.add(ids); err != nil {
		return err
	}
	return l.lost(mark)
}

func isPermanent(err error) bool {
	var permanent *sink.PermanentError
	return errors.As(err, &permanent)
}

// retryForever waits 0.1 s at first and 10 s at most.
func retryForever() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}
