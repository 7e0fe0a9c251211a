package listener

import (
	"context"
	"errors"
	"fmt"
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
	known   *sink.Mark    // the mark that the sink was told is saved
	opened  chan struct{} // closed when the first attempt to open the sink is over
}

// New makes the listener of the sink, the index-th among the stops, and reads what is saved of it.
func New(index int, s *Sink, config *Config, books *Books) (*Listener, error) {
	out := newOutgoing(s, config.ClusterUID)
	l := &Listener{
		Intake: newIntake(s, config, &books.numbers), Config: *config, index: index, books: books, seldom: retrySeldom(), out: out,
		trimming: trimming{out: out, trims: s.Oversize.Trims}, deadLetters: deadLetters{s.Name, s.DeadLetters, out, config.Observer},
		opened: make(chan struct{}),
	}
	return l, books.add(&l.Intake)
}

// Opened is closed when the sink is open for the first time, or a first attempt has failed for good.
func (l *Listener) Opened() <-chan struct{} { return l.opened }

// errAnew says that the sink is to be opened as in a new process.
var errAnew = errors.New("the sink is to be opened anew")

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

// tail is what the log has after the mark, where something is on disk for the sink.
type tail struct {
	first map[string]*bool // by the ids of the first batch on disk, and of their notes: whether the log holds it
	other bool             // the log holds something else
}

func (t *tail) take(id string, says bool) {
	if found := t.first[id]; found != nil {
		*found = true
		return
	}
	t.other = t.other || says && t.first != nil
}
