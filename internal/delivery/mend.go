package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// A sink that fails for good, with a *sink.PermanentError, stops alone: its queue works on as it does for a sink that
// is away, and it is opened again now and then, since somebody may have mended what is wrong. When no sink is left the
// run ends.

// mend opens the sink again after the error, however long that takes: at once what may be well by itself, and seldom
// what only a person can mend. A sink that was opened too early ends the run, which begins anew.
func (l *Listener) mend(ctx context.Context, err error) error {
	for {
		if IsLate(err) {
			return &endError{fmt.Errorf("deliver to sink %s: %w", l.Name, err)}
		}
		if IsPermanent(err) {
			if err := l.Halt(ctx, fmt.Errorf("deliver to sink %s: %w", l.Name, err)); err != nil {
				return err
			}
		} else {
			l.observer.Failed(l.Name, err)
		}
		if err = l.reopen(ctx); err == nil {
			return l.GoOn(ctx)
		}
		if !IsPermanent(err) && !IsLate(err) {
			return err
		}
	}
}

// Halt stops the sink and returns when it is to be tried again. It returns an error where no sink is left, or the run
// ends, and ErrLeft where the sink was open once and has left the line.
func (l *Listener) Halt(ctx context.Context, cause error) error {
	l.observer.Stopped(l.Name, cause)
	if err := l.stops.Stop(l.Index, cause); err != nil {
		return err
	}
	if !l.setHalted(true) {
		return cause
	}
	again, look := time.NewTimer(l.seldom.NextBackOff()), time.NewTicker(10*time.Second)
	defer again.Stop()
	defer look.Stop()
	left := l.gone
	if !l.IsJoined() {
		left = nil
	}
	if isFenced(cause) {
		again.Stop()
	}
	for {
		select {
		case <-again.C:
			return nil
		case <-look.C:
			l.burdensByAge()
		case <-left:
			return ErrLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// GoOn notes that the sink is open again. It returns ErrLeft where the sink has left meanwhile.
func (l *Listener) GoOn(ctx context.Context) error {
	l.mu.Lock()
	halted, left := l.state.goOn(), l.gone
	l.mu.Unlock()
	if halted {
		select {
		case <-left:
			return ErrLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.stops.Resume(l.Index)
	return nil
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
		if err == nil || ctx.Err() != nil || IsPermanent(err) || IsLate(err) {
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
		if err := again(); err == nil || ctx.Err() != nil || IsPermanent(err) || IsLate(err) {
			return err
		}
	}
}

// makeGood is the answer to a log that lost records while running. The saved mark stays, if the log still reaches it.
// If it does not, it goes back to the log's end: were it to stay, the log could grow to it again, and a crash would
// find nothing after it. It never goes forward, since what lies between may not be saved.
func (l *Listener) makeGood(ctx context.Context) error {
	end, saved := l.mark, l.SavedMark()
	left, err := l.openSaved(ctx, saved, func() (*afterMark, error) { return l.firstReading(nil) })
	var lost *sink.LostError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	if left.plain == "" {
		left.mark, left.plain = end, end
	}
	l.Recovery.With(func(r *line.Recovery) { r.Log.Know(left.after.log) }) // what was known of the log may be what was lost
	l.readAnew = true
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

// Wait returns when a sink that did not open may be opened again.
func (l *Listener) Wait(ctx context.Context) error { return l.patience.wait(ctx) }
