package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/statelog"
)

// errCutOff says that the broker of the log did not answer, so that others should try to lead.
var errCutOff = errors.New("the broker with the log of the state does not answer")

// Begin makes the directory the state that a run of an exporter begins with. Of one that is alone, a directory without
// a state is filled from the log.
func (l *StateLog) Begin(ctx context.Context, of *Term) error {
	if l == nil {
		return nil
	}
	if of != nil {
		return l.takeOver(ctx, of)
	}
	empty, err := checkpoint.IsEmpty(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	if err != nil || !empty {
		return err
	}
	l.logger.Info("there is no state; reading its log", "dir", l.cfg.State.Dir, "log", l.place.Name)
	err = l.claimBy(ctx, func(ctx context.Context) (*statelog.Claimed, error) { return statelog.Claim(ctx, l.place, l.bid()) })
	if err != nil {
		return fmt.Errorf("restore the state in %s: %w", l.cfg.State.Dir, err)
	}
	return l.restore(ctx)
}

// takeOver becomes the only writer of the log, which fences whoever led before, and makes the directory what the leader
// goes on from.
//
// The directory is newer than the log, by what was saved last and by what is spooled, if it is this member's own state
// and nobody else has led since. Otherwise the log is newer, and the directory counts only as a copy of the log: what
// it has beyond that, others have delivered without knowing it (I11).
func (l *StateLog) takeOver(ctx context.Context, of *Term) error {
	l.as, l.cut = of.claimant, of.end
	bounded, cancel := context.WithTimeoutCause(ctx, of.patience(), errCutOff)
	defer cancel()
	bid := l.bid()
	bid.Judge = of.mayClaim(bounded)
	err := l.claimBy(bounded, func(ctx context.Context) (*statelog.Claimed, error) { return of.standby.follower.Claim(ctx, bid) })
	if err != nil {
		if ctx.Err() == nil && errors.Is(context.Cause(bounded), errCutOff) {
			err = fmt.Errorf("%w within %s: %w", errCutOff, of.patience(), err)
		}
		return fmt.Errorf("take over: %w", err)
	}
	if of.standby.copy.IsState() {
		return l.goOnFromState(ctx, of.standby.copy)
	}
	return l.goOnFromCopy(ctx, of.standby.copy)
}

// goOnFromState goes on from a directory that this member has led with.
func (l *StateLog) goOnFromState(ctx context.Context, state *checkpoint.Copy) error {
	if err := state.Close(); err != nil {
		return err
	}
	own, err := l.isOwn(ctx)
	if err != nil || own {
		return err
	}
	if _, err := l.claimed.Found(); errors.Is(err, statelog.ErrNothing) {
		l.logger.Info("the log of the state is empty; the state directory counts", "log", l.place.Name, "dir", l.cfg.State.Dir)
		return nil
	}
	return l.restoreAnew(ctx)
}

// isOwn says whether the state in the directory is the newest one.
func (l *StateLog) isOwn(ctx context.Context) (bool, error) {
	led, found, err := checkpoint.LedAt(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	var damaged *checkpoint.DamagedError
	if errors.As(err, &damaged) {
		l.logger.Warn("the state directory is damaged; its log takes its place", "error", err)
		return false, nil
	}
	if err != nil || !found {
		return false, err
	}
	return l.claimed.IsNewest(led), nil
}

// goOnFromCopy makes the copy the state, if it has all that the log has. Of a log that has lost everything, a whole
// copy is an earlier state.
func (l *StateLog) goOnFromCopy(ctx context.Context, copied *checkpoint.Copy) error {
	began := time.Now()
	found, err := l.claimed.Found()
	var place []byte
	switch {
	case copied.Place() == nil:
	case errors.Is(err, statelog.ErrNothing):
		l.logger.Info("the log of the state is empty; the copy of it counts", "log", l.place.Name, "dir", l.cfg.State.Dir)
		return l.finish(copied, nil)
	case err == nil:
		place = found.End()
	}
	if place == nil || !bytes.Equal(place, copied.Place()) {
		return errors.Join(copied.Close(), l.restoreAnew(ctx))
	}
	if err := l.finish(copied, place); err != nil {
		return err
	}
	l.logger.Info("the copy of the log of the state has all of it", "dir", l.cfg.State.Dir, "log", l.place.Name, "saved", found.Saved.UTC(),
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (l *StateLog) finish(copied *checkpoint.Copy, place []byte) error {
	err := l.letters.clear()
	if err == nil {
		err = copied.Finish(place, l.letters.putBack)
	}
	if err != nil {
		return fmt.Errorf("make the copy of the log of the state in %s a state: %w", l.cfg.State.Dir, err)
	}
	return nil
}

// restoreAnew makes the directory what the log has, whatever it was.
func (l *StateLog) restoreAnew(ctx context.Context) error {
	if err := checkpoint.Discard(l.cfg.State.Dir); err != nil && !errors.Is(err, checkpoint.ErrNoState) {
		return err
	}
	if _, err := l.claimed.Found(); err == nil {
		if err := l.letters.clear(); err != nil {
			return err
		}
	}
	return l.restore(ctx)
}
