package listener

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Listener carries records from its queue to its sink: client-go's processorListener with a bounded queue, an
// acknowledgement and a memory. One goroutine runs it.
type Listener struct {
	Intake
	Config
	index       int
	books       *Books
	seldom      *backoff.ExponentialBackOff // how long a sink waits that is stopped
	patience    patience                    // with a sink that failed
	out         *outgoing                   // the batch that is written
	trimming    trimming                    // of what is too large
	deadLetters deadLetters                 // of what it will never take

	taken   []*change.Record    // the batch under way
	done    int                 // so many of it are acknowledged
	mark    sink.Mark           // after the last write
	retried map[string]struct{} // ids of the batch that failed, and that the log holds all the same
	tail    tail
	known   *sink.Mark // the mark that the sink was told is saved
	isSaved atomic.Pointer[sink.Mark]
	opened  chan struct{} // closed when the first attempt to open the sink is over
}

// Config is what the listeners of a run have in common.
type Config struct {
	ClusterUID string
	Store      *checkpoint.Store
	Streams    func() []*change.Stream    // that are configured now
	Reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Observer   Observer
	Stops      *Stops
	// Prove, where set, is asked whenever a sink was opened, before anything is written to it: nil says that nobody else
	// had taken over by then. A *sink.PermanentError stops the sink; after any other error it is asked again.
	Prove func(ctx context.Context) error
	Work  func(now bool)  // has the committer look, at once or soon
	Serve func(l *Intake) // the sink is offered everything from now on
	Ended EndFunc
}

// New makes the listener of the sink, the index-th among the stops, and reads what is saved of it.
func New(index int, s *Sink, config *Config, books *Books) (*Listener, error) {
	out := newOutgoing(s, config.ClusterUID)
	l := &Listener{
		Intake: newIntake(s, config, &books.numbers), Config: *config, index: index, books: books, seldom: retrySeldom(), out: out,
		trimming: trimming{out: out, trims: s.Oversize.Trims}, deadLetters: deadLetters{s.Name, s.DeadLetters, out, config.Observer},
		opened: make(chan struct{}),
	}
	return l, books.add(l)
}

// Opened is closed when the sink is open for the first time, or a first attempt has failed for good.
func (l *Listener) Opened() <-chan struct{} { return l.opened }

// saved notes that the state has what the listener had to save.
func (l *Listener) saved(s *Saving, state *checkpoint.SinkState) {
	mark := sink.Mark(state.Mark)
	l.isSaved.Store(&mark)
	l.shown.show(s.entries, state)
	l.Saved(s)
	for _, rec := range s.back {
		l.giveBack(rec)
	}
}

// errAnew says that the sink is to be opened as in a new process.
var errAnew = errors.New("the sink is to be opened anew")

// Run opens the sink, and delivers until there is nothing more or ctx ends. It returns nil then, and an error only where
// no retry helps. A sink that is not open yet is opened for as long as opening lives.
func (l *Listener) Run(opening, ctx context.Context) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	for {
		if err := l.openAnew(opening); err != nil {
			if opening.Err() != nil && IsEnd(err) == nil {
				return nil
			}
			return err
		}
		l.use(func(*fifo.Backlog) { l.cut = cut })
		err := l.deliverAll(ctx)
		l.use(func(*fifo.Backlog) { l.cut = nil })
		switch {
		case errors.Is(err, errAnew):
		case err == nil || ctx.Err() != nil:
			return nil
		default:
			return l.ended(err)
		}
		for _, rec := range l.leave() {
			rec.Replay.Done("", fmt.Errorf("sink %s is stopped: try again when it is open", l.Name))
		}
		if opening.Err() != nil {
			return nil
		}
	}
}

// ended says which sink it was that ended the run.
func (l *Listener) ended(err error) error {
	var end *endError
	if errors.As(err, &end) || IsPermanent(err) { // says so
		return err
	}
	return fmt.Errorf("deliver to sink %s: %w", l.Name, err)
}

func (l *Listener) deliverAll(ctx context.Context) error {
	var batch []*change.Record
	for {
		var err error
		if batch, err = l.take(ctx, batch); err != nil || len(batch) == 0 {
			return err
		}
		l.taken, l.done = batch, 0
		if err := l.deliver(ctx, batch); err != nil {
			return err
		}
		l.taken = nil
		clear(batch) // the records are free
	}
}

// take returns what is next, up to the batch limit, and waits only while there is nothing, or too much is not saved: a
// busy sink gets large batches by itself, an idle one a batch of one at once. It returns nothing when there will be
// nothing more in the queue: what is on disk then is for the next process.
func (l *Listener) take(ctx context.Context, batch []*change.Record) ([]*change.Record, error) {
	for {
		var turn fifo.Turn
		l.use(func(b *fifo.Backlog) {
			if l.ledger.size < maxUnsaved {
				turn, batch = b.Take(batch)
			}
		})
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

// settle acknowledges the first n of the batch, after which the sink's log stands at the mark; "" is that nothing was
// written.
func (l *Listener) settle(n int, mark sink.Mark) {
	if n <= l.done {
		return
	}
	batch := l.taken[l.done:n]
	l.done = n
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked(batch, string(mark))
	extent := l.backlog.Extent()
	isRead := !extent.Empty() // what comes next is taken when this is saved
	l.work(isRead || len(l.ledger.entries) >= checkpoint.MaxRecords || l.ledger.size > maxUnsaved/2)
}

// stop stops the sink and returns when it is to be tried again. It returns an error where no sink is left, or the run
// ends, and errAnew where it is to be opened as in a new process.
func (l *Listener) stop(ctx context.Context, cause error) error {
	if err := l.Stops.Stop(l.index, cause); err != nil {
		return err
	}
	l.Observer.Stopped(l.Name, cause)
	anew := l.halt()
	if anew {
		for _, rec := range l.leave() {
			rec.Replay.Done("", fmt.Errorf("sink %s is stopped: try again when it is open", l.Name))
		}
	}
	if query(&l.Intake, (*fifo.Backlog).IsFinished) && !query(&l.Intake, (*fifo.Backlog).CanSpill) {
		return cause
	}
	if isFenced(cause) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	again := time.NewTimer(l.seldom.NextBackOff())
	defer again.Stop()
	select {
	case <-again.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if anew {
		return errAnew
	}
	return nil
}

// mend opens the sink again after the error, however long that takes: at once what may be well by itself, and seldom
// what only a person can mend. A sink that was opened too early ends the run, which begins anew.
func (l *Listener) mend(ctx context.Context, err error) error {
	for {
		if IsLate(err) {
			return &endError{fmt.Errorf("deliver to sink %s: %w", l.Name, err)}
		}
		if IsPermanent(err) {
			if err := l.stop(ctx, fmt.Errorf("deliver to sink %s: %w", l.Name, err)); err != nil {
				return err
			}
		} else {
			l.Observer.Failed(l.Name, err)
		}
		if err = l.reopen(ctx); err == nil {
			l.resume()
			l.Stops.Resume(l.index)
			return nil
		}
		var lost *sink.LostError
		if errors.As(err, &lost) {
			l.Observer.Failed(l.Name, err)
			return errAnew
		}
		if !IsPermanent(err) && !IsLate(err) {
			return err
		}
	}
}
