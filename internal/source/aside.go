package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// A list shows at once that very many objects are gone. Each turn takes a few of them, so that no live change waits for
// all.

// stepAside lets the watch have its turn, and the sinks theirs, before each turnObjects entries that were not listed.
// The caller has the turn, and loses it meanwhile.
func (r *reading) stepAside(ctx context.Context) error {
	if r.entries++; r.entries < turnObjects {
		return nil
	}
	return r.aside(ctx, r.awaitSinks)
}

// aside gives the turn away while it waits. Its errors say what the page that is being compared is worth then.
func (r *reading) aside(ctx context.Context, wait func(context.Context) error) error {
	r.entries = 0
	r.turns.give()
	err := wait(ctx)
	r.turns.take()
	switch {
	case err != nil:
		return err
	case r.turns.open != r.watch:
		return errWatchEnded
	case r.forgot():
		return errTooRecent
	}
	return nil
}

// longestPace is how long a snapshot waits for its sinks before it looks how much is remembered.
const longestPace = 5 * time.Second

// awaitSinks returns when each sink that the snapshot is for has room for more of it. Nobody's turn is held meanwhile,
// so the watch goes on. That may take as long as what is on disk for a sink: it ends where too much is remembered of
// what the watch tells meanwhile (I6).
func (r *reading) awaitSinks(ctx context.Context) error {
	for _, p := range r.parts {
		for began, over := time.Now(), false; !over; {
			waited, err := r.awaitSoon(ctx, p)
			switch over = err == nil; {
			case ctx.Err() != nil:
				return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, context.Cause(ctx))
			case err != nil && !errors.Is(err, context.DeadlineExceeded):
				return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, err)
			case waited && over:
				p.pace.waited(time.Since(began))
			}
			if over {
				continue
			}
			if full, err := r.isFull(ctx); full || err != nil {
				return cmp.Or(err, errTooRecent)
			}
		}
	}
	return nil
}

// awaitSoon waits for the part's sink, and not for long.
func (r *reading) awaitSoon(ctx context.Context, p *part) (waited bool, err error) {
	soon, stop := context.WithTimeout(ctx, longestPace)
	defer stop()
	return r.line.Pace(soon, &r.stream, p.owed.Sink, p.pace.limit())
}
