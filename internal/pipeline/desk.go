package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// ErrNotStreaming says that the pipeline does not take questions yet, or not any more.
var ErrNotStreaming = errors.New("the exporter does not stream yet, because a sink or the state is not open, " +
	"or it is about to stop: see /statusz, and ask again")

// askTime is how long a question waits for a pipeline that is still opening its sinks.
const askTime = 10 * time.Second

// hand passes do to the pipeline, and returns once that has taken it.
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

// ask has the pipeline call do, and waits for the result even if ctx ends: a caller that gave up would not know what
// was done.
func (d Desk) ask(ctx context.Context, do func(*run) error) error {
	answer := make(chan error, 1)
	if err := d.hand(ctx, func(_ context.Context, r *run) { answer <- do(r) }); err != nil {
		return err
	}
	return <-answer
}

// Request returns when it is durable that the snapshots are owed. Its error names what is unknown, and what there is.
func (d Desk) Request(ctx context.Context, asked Request) error {
	return d.ask(ctx, func(r *run) error { return r.request(&asked) })
}

// Steer stops, pauses or resumes owed snapshots, by their IDs, and returns when that is durable. A *RefusedError says
// that one of them cannot be steered so; then nothing is done. heard is saved with it, as in checkpoint.Batch.
func (d Desk) Steer(ctx context.Context, do checkpoint.Steering, ids []string, heard map[string][]byte) error {
	return d.ask(ctx, func(r *run) error { return r.steer(do, ids, heard) })
}

// Replay queues the record of a dead letter for its sink. The record's Replay.Done is told what becomes of it; it may
// be called more than once, and must return at once. A *listener.SupersededError says that the letter is history.
func (d Desk) Replay(ctx context.Context, rec *change.Record) error {
	return d.hand(ctx, func(ctx context.Context, r *run) {
		if err := r.replay(ctx, rec); err != nil {
			rec.Replay.Done("", err)
		}
	})
}
