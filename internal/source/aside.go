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
	r.entries = 0
	return r.watch.aside(ctx, r.awaitSinks)
}

// awaitSinks returns when each sink that the snapshot is for has room for more of it. Nobody's turn is held meanwhile,
// so the watch goes on. That may take as long as what is on disk for a sink: it ends where too much is remembered of
// what the watch tells meanwhile (I6).
func (r *reading) awaitSinks(ctx context.Context) error {
	for _, p := range r.parts {
		for began, over := time.Now(), false; !over; {
			waited, err := p.awaitSoon(ctx, r.line, &r.stream)
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
			if full, _, err := r.watch.remembered(ctx); full || err != nil {
				return cmp.Or(err, errTooRecent)
			}
		}
	}
	return nil
}
