package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/fifo"
)

// A sink that fails for good, with a *sink.PermanentError, stops alone: its queue works on as it does for a sink that
// is away, and it is opened again now and then, since somebody may have mended what is wrong. When no sink is left the
// run ends.

// mend opens the sink again after the error, however long that takes: at once what may be well by itself, and seldom
// what only a person can mend.
func (l *Listener) mend(ctx context.Context, err error) error {
	for {
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
		if !IsPermanent(err) {
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

// setHalted notes whether the sink is stopped. It is false where the run ends already, and nothing is spooled: nobody
// waits then.
func (l *Listener) setHalted(halted bool) (goesOn bool) {
	l.use(func(b *fifo.Backlog) {
		l.state.halted = halted
		if b.IsFinished() && b.StartSpill() {
			l.Seat.Wake()
		}
		goesOn = !b.IsFinished() || b.CanSpill()
	})
	return goesOn
}
