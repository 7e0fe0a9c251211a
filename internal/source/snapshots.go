package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
)

// readSnapshots gives all snapshots that are due.
func (s *Stream) readSnapshots(ctx context.Context) {
	for {
		one, end := context.WithCancel(ctx)
		owed := s.schedule.beginRead(ctx, func() { go s.cutOff(one, end) })
		if owed == nil {
			end()
			return
		}
		err := s.giveSnapshot(ctx, one, owed)
		end()
		s.schedule.doneRead(err != nil)
	}
}

// giveSnapshot gives one snapshot. It goes on after failures, without another begin, until one ends, which is within
// ctx, or its list turns out not to be sorted.
func (s *Stream) giveSnapshot(ctx, one context.Context, due []change.Owed) error {
	r, step, err := s.nextReading(ctx, due)
	if err != nil {
		return err
	}
	leave, err := s.Gate.enter(one, r.precedence())
	if err != nil {
		return err
	}
	defer leave()
	defer r.close(ctx)
	for step != nil {
		next, err := r.try(one, step)
		if err != nil {
			return err
		}
		step = next
	}
	return nil
}

// nextReading returns what reads the snapshot, and its first step. A comparison was announced before the watch.
func (s *Stream) nextReading(ctx context.Context, due []change.Owed) (*reading, step, error) {
	give, err := s.turns.takeIn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer give()
	if r, is := s.beside.(*reading); is && r.announced {
		r.announced = false
		return r, r.prepare, nil
	}
	r := s.newReading(due)
	if r.isComparison() {
		return r, r.announceAgain, nil
	}
	return r, r.begin, nil
}

// precedence is the snapshot's.
func (r *reading) precedence() precedence {
	if r.isComparison() {
		return r.Stream.precedence()
	}
	return othersLast
}

// try does the step until it succeeds.
func (r *reading) try(ctx context.Context, do step) (next step, err error) {
	failed := false
	err = backoff.RetryNotify(func() error {
		next, err = do(ctx)
		return r.repeats(ctx, err)
	}, backoff.WithContext(snapshotBackoff(), ctx), func(err error, _ time.Duration) {
		if failed = !errors.Is(err, errWatchEnded); failed {
			r.Observer.Failed(r.stream, fmt.Errorf("read a snapshot of %s: %w", r.stream, err))
		}
	})
	if failed && err == nil {
		r.Observer.Watching(r.stream, r.snapshot.ResourceVersion) // it works again
	}
	return next, err
}

// repeats is the error, marked where the step is not to be tried again.
func (r *reading) repeats(ctx context.Context, err error) error {
	var unordered *UnorderedError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnsorted):
		r.origin.unsorted.Store(true) // for good: this server does not sort
	case errors.As(err, &unordered):
		r.refuseAside(ctx, err)
	case ctx.Err() == nil:
		return err
	}
	return backoff.Permanent(err)
}

// snapshotBackoff is reflectorBackoff for the reader.
func snapshotBackoff() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0),
	)
}

// refuseAside refuses the stream, and ends its watch.
func (r *reading) refuseAside(ctx context.Context, err error) {
	turn, lost := r.turns.takeIn(ctx)
	if lost != nil {
		return
	}
	err = r.refuse(ctx, err)
	turn()
	r.Observer.Failed(r.stream, err)
	r.schedule.endWatch()
}

// Withdraw makes full snapshots due no more. One that is read is over soon, and has no end. Others that share its list
// begin anew.
func (s *Stream) Withdraw(owed ...change.Owed) { s.schedule.withdraw(owed) }

// Due are the full snapshots that the stream was asked for and that are not read yet.
func (s *Stream) Due() []change.Owed { return s.schedule.full() }

// cutOff ends one snapshot while nobody has the turn: what is told of an object is told whole.
func (s *Stream) cutOff(one context.Context, end context.CancelFunc) {
	if give, err := s.turns.takeIn(one); err == nil {
		end()
		give()
	}
}
