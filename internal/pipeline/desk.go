package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// ErrNotStreaming says that the pipeline cannot take what is asked yet, or no more.
var ErrNotStreaming = errors.New("the exporter does not stream yet, because a sink or the state is not open, " +
	"or it is about to stop: see /statusz, and ask again")

// askTime is how long a question waits for a pipeline that still opens its sinks.
const askTime = 10 * time.Second

// hand has the pipeline do it.
func (d Desk) hand(ctx context.Context, do func(context.Context, *run)) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case d <- do:
		return nil
	case <-ctx.Done():
		return ErrNotStreaming
	}
}

// ask waits for the answer, which comes for all that was taken: who gave up before would not know what is done.
func (d Desk) ask(ctx context.Context, do func(*run) error) error {
	answer := make(chan error, 1)
	if err := d.hand(ctx, func(_ context.Context, r *run) { answer <- do(r) }); err != nil {
		return err
	}
	return <-answer
}

// Request returns when the snapshots are owed for good, so that they survive a crash. Its error names what is unknown
// and what there is.
func (d Desk) Request(ctx context.Context, asked Request) error {
	return d.ask(ctx, func(r *run) error { return r.request(&asked) })
}

// Steer does something with owed snapshots, by their IDs, and returns when that is durable. A *RefusedError is of an
// order that cannot be followed: nothing of it is done. What is heard is saved with it, as in checkpoint.Batch.
func (d Desk) Steer(ctx context.Context, do checkpoint.Steering, ids []string, heard map[string][]byte) error {
	return d.ask(ctx, func(r *run) error { return r.steer(do, ids, heard) })
}

// Replay has the record of a dead letter put in line, for its sink alone. What becomes of it is told to its
// Replay.Done, which may be called more than once and returns at once: a *listener.SupersededError is that it is
// history.
func (d Desk) Replay(ctx context.Context, rec *change.Record) error {
	return d.hand(ctx, func(ctx context.Context, r *run) {
		if err := r.replay(ctx, rec); err != nil {
			rec.Replay.Done("", err)
		}
	})
}
