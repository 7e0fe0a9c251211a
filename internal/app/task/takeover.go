package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/statelog"
)

// errCutOff says that the broker of the log did not answer, so that others should try to lead.
var errCutOff = errors.New("the broker with the log of the state does not answer")

// takeOver becomes the only writer of the log, which fences whoever led before, and makes the directory what the leader
// goes on from.
//
// The directory is newer than the log, by what was saved last and by what is spooled, if nobody else has led since this
// member did. Otherwise the log is newer, and the directory counts for nothing: what it has beyond the log, others have
// delivered without knowing it (I11).
func (l *StateLog) takeOver(ctx context.Context, of *Term) error {
	l.as, l.cut = of.claimant, of.end
	bounded, cancel := context.WithTimeoutCause(ctx, of.patience(), errCutOff)
	defer cancel()
	if err := l.claim(bounded); err != nil {
		if ctx.Err() == nil && errors.Is(context.Cause(bounded), errCutOff) {
			err = fmt.Errorf("%w within %s: %w", errCutOff, of.patience(), err)
		}
		return fmt.Errorf("take over: %w", err)
	}
	own, err := l.isOwn(ctx)
	if err != nil || own {
		return err
	}
	if _, err := l.claimed.Found(); errors.Is(err, statelog.ErrNothing) {
		l.logger.Info("the log of the state is empty; the state directory counts", "log", l.place.Name, "dir", l.cfg.State.Dir)
		return nil
	}
	if err := checkpoint.Discard(l.cfg.State.Dir); err != nil && !errors.Is(err, checkpoint.ErrNoState) {
		return err
	}
	return l.restore(ctx)
}

// isOwn says whether the directory has the newest state.
func (l *StateLog) isOwn(ctx context.Context) (bool, error) {
	logged, found, err := checkpoint.LoggedAt(ctx, l.cfg.State.Dir, checkpoint.Options{Logger: l.logger})
	var damaged *checkpoint.DamagedError
	if errors.As(err, &damaged) {
		l.logger.Warn("the state directory is damaged; its log takes its place", "error", err)
		return false, nil
	}
	if err != nil || !found {
		return false, err
	}
	end, _ := l.claimed.End()
	return l.claimed.Before().Member == l.as.Member || len(end) > 0 && bytes.Equal(end, logged), nil
}
