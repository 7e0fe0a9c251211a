package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// open opens the sink at the mark and remembers what its log holds behind it. A sink without a mark gets one before its
// first record, so that a crash after that record finds it. After a *sink.LostError the sink is open.
func (l *Listener) open(ctx context.Context, mark sink.Mark) error {
	left, err := l.openAs(ctx, mark)
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	l.mark, l.plain = left.mark, left.plain
	if mark == "" || lost != nil && left.plain == "" {
		var markErr error
		if l.mark, markErr = l.Target.Write(ctx, nil); markErr != nil {
			return fmt.Errorf("read the mark: %w", markErr)
		}
		l.plain = l.mark
	}
	l.remember(left.behind)
	if err := left.behind.settle(); err != nil {
		return err
	}
	l.observer.Opened(l.Name, left.behind.count)
	return err
}

// openAs opens the sink again at the mark of its last write, or for the first time at the saved one.
func (l *Listener) openAs(ctx context.Context, mark sink.Mark) (remains, error) {
	if !l.opened {
		return l.openSaved(ctx, mark, func() (*behindMark, error) { return l.firstReading(l.spooledFirst) })
	}
	behind, err := l.read(ctx, mark, l.reading, nil)
	return remains{behind: behind, mark: mark}, err
}

// remains are what an earlier process left in a sink's log.
type remains struct {
	behind *behindMark
	mark   sink.Mark
	plain  sink.Mark // the same one, or where that carries ids an earlier one; "" where the log has lost both
}

// openSaved opens the sink at its saved mark, which may carry ids. Where the log has lost it, not all that it carries
// is still there; but what lies behind the plain mark is, as far as the log reaches that. The error is a
// *sink.LostError then, too.
func (l *Listener) openSaved(ctx context.Context, saved sink.Mark, begin beginning) (remains, error) {
	carried, err := l.store.Carried(l.Name)
	if err != nil {
		return remains{}, err
	}
	behind, err := l.read(ctx, saved, begin, carried.IDs)
	var lost *sink.LostError
	switch {
	case err == nil && len(carried.IDs) > 0:
		return remains{behind, saved, carried.From}, nil
	case err == nil:
		return remains{behind, saved, saved}, nil
	case !errors.As(err, &lost) || len(carried.IDs) == 0:
		return remains{behind: behind}, err
	}
	behind, again := l.read(ctx, carried.From, begin, nil)
	switch {
	case again == nil:
		return remains{behind, carried.From, carried.From}, err
	case errors.As(again, &lost):
		return remains{behind: behind}, err
	}
	return remains{}, again
}

// beginning begins to read what a log holds.
type beginning func() (*behindMark, error)

// read opens the sink at the mark, and folds what the mark carries and what the log holds behind it. After a
// *sink.LostError that is nothing.
func (l *Listener) read(ctx context.Context, mark sink.Mark, begin beginning, carried []string) (*behindMark, error) {
	var behind *behindMark
	var failed error
	again := func() func(string) {
		if behind, failed = begin(); failed != nil {
			return func(string) {}
		}
		for _, id := range carried {
			behind.take(id)
		}
		return behind.take
	}
	if again(); failed != nil { // a sink that finds nothing need not begin
		return nil, failed
	}
	err := l.Target.Open(ctx, sink.Opening{Mark: mark, Behind: again})
	switch {
	case failed != nil:
		return nil, failed
	case err == nil:
		return behind, behind.err()
	}
	if behind, failed = begin(); failed != nil {
		return nil, failed
	}
	return behind, err
}

// firstReading begins to read what an earlier process left: its records come again in whatever shape.
func (l *Listener) firstReading(spooled []*change.Record) (*behindMark, error) {
	behind, err := l.reading()
	if err != nil {
		return nil, err
	}
	behind.log = l.reader.Read(l.Recovery.Streams(), spooled)
	if l.is(state.lacks) {
		behind.held = newHeldReading(l, l.Recovery.Streams())
	}
	behind.unread, err = newUnreadReading(l)
	return behind, err
}

// reading begins to read what this process' last batch left, which is tried again as it is.
func (l *Listener) reading() (*behindMark, error) {
	behind := &behindMark{
		reader: &l.reader, retried: map[string]struct{}{},
		letters: func(string) {}, settle: func() error { return nil },
	}
	if l.DeadLetters == nil {
		return behind, nil
	}
	var err error
	behind.letters, behind.settle, err = l.DeadLetters.Settle()
	return behind, err
}

// remember notes what the log holds.
func (l *Listener) remember(behind *behindMark) {
	if behind.log == nil {
		l.retried = behind.retried
		return
	}
	l.opened, l.spooledFirst = true, nil
	if behind.held != nil {
		l.heldBehind = behind.held.all
	}
	if behind.unread != nil {
		l.unread = behind.unread.all
	}
	l.Recovery.With(func(r *line.Recovery) { r.Log.Know(behind.log) })
	l.compared.Store(true)
}

// reopen opens the sink again at the last mark, after an error that the sink could not mend, for as long as ctx lives.
func (l *Listener) reopen(ctx context.Context) error {
	var lost *sink.LostError
	again := func() error {
		if lost != nil {
			return l.makeGood(ctx)
		}
		err := l.Target.Close(ctx)
		if err == nil {
			err = l.open(ctx, l.mark)
		}
		if err == nil || ctx.Err() != nil || IsPermanent(err) {
			return err
		}
		l.observer.Failed(l.Name, err)
		if errors.As(err, &lost) {
			return l.makeGood(ctx)
		}
		return err
	}
	for {
		if err := l.patience.wait(ctx); err != nil {
			return err
		}
		if err := again(); err == nil || ctx.Err() != nil || IsPermanent(err) {
			return err
		}
	}
}

// makeGood is the answer to a log that lost records while running. The saved mark stays, if the log still reaches it.
// If it does not, it goes back to the log's end: were it to stay, the log could grow to it again, and a crash would
// find nothing behind it. It never goes forward, since what lies between may not be saved.
func (l *Listener) makeGood(ctx context.Context) error {
	end, saved := l.mark, l.SavedMark()
	left, err := l.openSaved(ctx, saved, func() (*behindMark, error) { return l.firstReading(nil) })
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	if left.plain == "" {
		left.mark, left.plain = end, end
	}
	l.Recovery.With(func(r *line.Recovery) { r.Log.Know(left.behind.log) }) // what was known of the log may be what was lost
	if err := l.Recall(ctx); err != nil {
		return err
	}
	return l.lost(l.Name, left.mark, left.plain)
}

// OpenFirst is open in a new process, or after the sink has left. What the sink could not mend by itself is tried
// again: the others go on.
func (l *Listener) OpenFirst(ctx context.Context, mark sink.Mark) error {
	for {
		err := l.open(ctx, mark)
		if err == nil || l.opened || IsPermanent(err) || ctx.Err() != nil {
			return err
		}
		l.observer.Failed(l.Name, err)
		if err := l.patience.wait(ctx); err != nil {
			return err
		}
	}
}

// Mark is where the open sink goes on from.
func (l *Listener) Mark() sink.Mark { return l.mark }

// Rewind makes the line go on from there.
func (l *Listener) Rewind() { l.Seat.Rewind(l.mark, l.plain) }

// Wait returns when a sink that did not open may be opened again.
func (l *Listener) Wait(ctx context.Context) error { return l.patience.wait(ctx) }

// CompareWith makes the positions those that the sink's log is compared with.
func (l *Listener) CompareWith(replayBases map[string]change.Position) {
	l.reader.ReplayBase = replayBases
}
