package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/redo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// past is what an earlier process, or a batch that failed, has left in the sink's log and on disk.
type past struct {
	onDisk
	shape        func(rec *change.Record)        // decides whether a record goes on that is made here
	prove        func(ctx context.Context) error // that nobody else leads; nil is that nobody else could
	mark         sink.Mark
	plain        sink.Mark           // of the opening: the newest that carries nothing
	reader       redo.Reader         // of ids in the log
	based        fifo.Spool          // what was on disk when the positions were saved that the log is compared with
	heldAfter    []checkpoint.Held   // what the log of a sink that comes back holds after the mark
	unread       []checkpoint.Held   // what the log holds after the mark of streams that are not configured
	spooledFirst []*change.Record    // those on disk that an earlier process may have delivered
	unreadFirst  []*change.Record    // those among them of streams that are not configured
	opened       bool                // in this process
	retried      map[string]struct{} // ids of the batch that failed, and that the log holds all the same
	given, rest  []*change.Record    // the batch under way, and what of it the sink does not have; nil between batches
	readAnew     bool                // the log, while a batch was under way: what it holds is another past
	compared     atomic.Bool         // what the log holds is known
}

// open opens the sink at the mark and remembers what its log holds after it. A sink without a mark gets one before its
// first record, so that a crash after that record finds it. After a *sink.LostError the sink is open.
func (p *past) open(ctx context.Context, mark sink.Mark) error {
	left, err := p.openAs(ctx, mark)
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	p.mark, p.plain = left.mark, left.plain
	if mark == "" || lost != nil && left.plain == "" {
		var markErr error
		if p.mark, markErr = p.Target.Write(ctx, nil); markErr != nil {
			return fmt.Errorf("read the mark: %w", markErr)
		}
		p.plain = p.mark
	}
	p.remember(left.after)
	if err := left.after.settle(); err != nil {
		return err
	}
	p.observer.Opened(p.Name, left.after.count)
	return err
}

// openAs opens the sink again at the mark of its last write, or for the first time at the saved one.
func (p *past) openAs(ctx context.Context, mark sink.Mark) (remains, error) {
	if !p.opened {
		return p.openSaved(ctx, mark, func() (*afterMark, error) { return p.firstReading(p.spooledFirst) })
	}
	after, err := p.readAgain(ctx, mark)
	return remains{after: after, mark: mark}, err
}

// remains are what an earlier process left in a sink's log.
type remains struct {
	after *afterMark
	mark  sink.Mark
	plain sink.Mark // the same one, or where that carries ids an earlier one; "" where the log has lost both
}

// openSaved opens the sink at its saved mark, which may carry ids. Where the log has lost it, not all that it carries
// is still there; but what lies after the plain mark is, as far as the log reaches that. The error is a
// *sink.LostError then, too.
func (p *past) openSaved(ctx context.Context, saved sink.Mark, begin beginning) (remains, error) {
	carried, err := p.store.Carried(p.Name)
	if err != nil {
		return remains{}, err
	}
	after, err := p.read(ctx, saved, begin, carried.IDs)
	var lost *sink.LostError
	switch {
	case err == nil && len(carried.IDs) > 0:
		return remains{after, saved, carried.From}, nil
	case err == nil:
		return remains{after, saved, saved}, nil
	case !errors.As(err, &lost) || len(carried.IDs) == 0:
		return remains{after: after}, err
	}
	after, again := p.read(ctx, carried.From, begin, nil)
	switch {
	case again == nil:
		return remains{after, carried.From, carried.From}, err
	case errors.As(again, &lost):
		return remains{after: after}, err
	}
	return remains{}, again
}

// beginning begins to read what a log holds.
type beginning func() (*afterMark, error)

// readAgain opens the sink that was open before.
func (p *past) readAgain(ctx context.Context, mark sink.Mark) (*afterMark, error) {
	return p.openAt(ctx, sink.Opening{Mark: mark, Again: true}, p.reading, nil)
}

// read opens the sink at the mark, and folds what the mark carries and what the log holds after it. After a
// *sink.LostError that is nothing.
func (p *past) read(ctx context.Context, mark sink.Mark, begin beginning, carried []string) (*afterMark, error) {
	return p.openAt(ctx, sink.Opening{Mark: mark}, begin, carried)
}

func (p *past) openAt(ctx context.Context, at sink.Opening, begin beginning, carried []string) (*afterMark, error) {
	var after *afterMark
	var failed error
	again := func() func(string) {
		if after, failed = begin(); failed != nil {
			return func(string) {}
		}
		for _, id := range carried {
			after.take(id)
		}
		return after.take
	}
	if again(); failed != nil { // a sink that finds nothing need not begin
		return nil, failed
	}
	at.After = again
	err := p.openTarget(ctx, at)
	switch {
	case failed != nil:
		return nil, failed
	case err == nil:
		return after, after.err()
	}
	if after, failed = begin(); failed != nil {
		return nil, failed
	}
	return after, err
}

// openTarget opens the sink, which is ours then: whoever takes over from here on opens it later. After a
// *sink.LostError it is open.
func (p *past) openTarget(ctx context.Context, at sink.Opening) error {
	err := p.Target.Open(ctx, at)
	var lost *sink.LostError
	if p.prove == nil || err != nil && !errors.As(err, &lost) {
		return err
	}
	var patience patience
	for {
		unproven := p.prove(ctx)
		if unproven == nil {
			return err
		}
		if ctx.Err() != nil || IsPermanent(unproven) {
			return unproven
		}
		p.observer.Failed(p.Name, unproven)
		if unproven := patience.wait(ctx); unproven != nil {
			return unproven
		}
	}
}

// firstReading begins to read what an earlier process left: its records come again in whatever shape.
func (p *past) firstReading(spooled []*change.Record) (*afterMark, error) {
	after, err := p.reading()
	if err != nil {
		return nil, err
	}
	after.log = p.reader.Read(p.Recovery.Streams(), spooled)
	if p.is(state.lacks) || p.Gate != nil { // which may come to miss a stream while its log is read
		after.held = newHeldReading(&p.reader, p.Name, p.Recovery.Streams())
	}
	after.unread, err = newUnreadReading(&p.onDisk, &p.reader, p.unreadFirst)
	return after, err
}

// reading begins to read what this process' last batch left, which is tried again as it is.
func (p *past) reading() (*afterMark, error) {
	after := &afterMark{
		reader: &p.reader, retried: map[string]struct{}{},
		letters: func(string) {}, settle: func() error { return nil },
	}
	if p.DeadLetters == nil {
		return after, nil
	}
	var err error
	after.letters, after.settle, err = p.DeadLetters.Settle()
	return after, err
}

// remember notes what the log holds.
func (p *past) remember(after *afterMark) {
	if after.log == nil {
		p.retried = after.retried
		return
	}
	p.opened, p.spooledFirst, p.unreadFirst = true, nil, nil
	if after.held != nil {
		p.heldAfter = after.held.all
	}
	if after.unread != nil {
		p.unread = after.unread.all
	}
	p.Recovery.With(func(r *line.Recovery) { r.Log.Know(after.log) })
	p.compared.Store(true)
}

// Mark is where the open sink goes on from.
func (p *past) Mark() sink.Mark { return p.mark }

// Rewind makes the line go on from there.
func (p *past) Rewind() { p.Seat.Rewind(p.mark, p.plain) }

// CompareWith makes the positions those that the sink's log is compared with. They are the present ones, or some are an
// earlier process', and then all that is on disk may have been saved since.
func (p *past) CompareWith(replayBases map[string]change.Position, present bool) (err error) {
	p.reader.ReplayBase, p.reader.Replays, p.based = replayBases, p.replays, fifo.Spool{}
	if present {
		p.based, err = p.store.Spool(p.Name)
	}
	return err
}

// replays says whether anything is on disk that was saved since the positions that the log is compared with.
func (p *past) replays() (bool, error) {
	now, err := p.store.Spool(p.Name)
	for part, e := range now {
		if e.Next > max(e.First, p.based[part].Next) {
			return true, err
		}
	}
	return false, err
}

// mayKnow says whether an earlier process may have written what comes now: the sink's log was not read yet, or holds
// records of the stream that are to come again.
func (p *past) mayKnow(stream *change.Stream) bool {
	if !p.compared.Load() {
		return true
	}
	expects := false
	p.Recovery.With(func(r *line.Recovery) { expects = r.Log.Expects(stream.String()) })
	return expects
}

// LoadSpool takes up what an earlier process has left, before the sink is opened.
func (p *past) LoadSpool() error {
	saved, err := p.store.Spool(p.Name)
	if err == nil {
		err = p.firstSpooled(saved)
	}
	if err != nil {
		return err
	}
	var oldest time.Time
	if len(p.spooledFirst) > 0 {
		oldest = p.spooledFirst[0].Received
	}
	p.use(func(b *fifo.Backlog) { b.Resume(saved, oldest) })
	return nil
}

// firstSpooled reads the first batch on disk that is not delivered: a process may have written it without noting that.
func (p *past) firstSpooled(extent fifo.Spool) (err error) {
	p.use(func(b *fifo.Backlog) { extent = b.Undelivered(extent) })
	p.spooledFirst, p.unreadFirst, err = p.readSpool(&extent)
	return err
}
