package source

import "context"

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

// awaitSuspects settles what can be when the watch has moved.
func (r *reading) awaitSuspects(ctx context.Context) error {
	at := stand{r.turns.open, r.cursor.position}
	if err := r.aside(ctx, func(ctx context.Context) error { return r.await(ctx, at) }); err != nil {
		return err
	}
	err := r.settleAll(ctx)
	r.silent = false // which is true of this list only
	return err
}
