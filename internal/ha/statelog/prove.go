package statelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// proving is how long a proof may take.
const proving = 10 * time.Second

var (
	errSilent = fmt.Errorf("the log of the state has taken no write for %s: it is tried again", proving)
	errOver   = errors.New("the log of the state is not written any more")
)

// Prove returns nil when the log has taken a write that was begun since the call: so long nobody else had claimed it.
// It returns a *sink.PermanentError with Fenced where somebody had, and then Run tells Failed so, too. Any other error
// says nothing about who leads, and is of no kind that a caller could take for an error of its own. Any goroutine may
// call it while Run runs.
func (l *Log) Prove(ctx context.Context) error {
	bounded, cancel := context.WithTimeoutCause(ctx, proving, errSilent)
	defer cancel()
	answer := make(chan error, 1)
	var err error
	select {
	case l.proofs <- answer:
		select {
		case err = <-answer:
		case <-bounded.Done():
			err = context.Cause(bounded)
		}
	case <-l.ended:
		err = errOver
	case <-bounded.Done():
		err = context.Cause(bounded)
	}
	switch {
	case err == nil:
		return nil
	case sink.IsFenced(err):
		return fmt.Errorf("prove that this exporter still leads: %w", err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("prove that this exporter still leads: %v", err)
}
