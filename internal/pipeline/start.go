package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// open opens all sinks at their marks and finds out which of them must be given a full snapshot. It returns when all are
// open: before that, nothing is read from the API server.
func (r *run) open(ctx context.Context) error {
	lost := make([]bool, len(r.listeners))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, l := range r.listeners {
		group.Go(func() (err error) {
			lost[i], err = r.openSink(groupCtx, l)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.settle(lost); err != nil {
		return err
	}
	r.resumeCorrections()
	return r.requestOwed(func(checkpoint.Debt) bool { return true }) // from earlier lives, too
}

// resumeCorrections repeats the full snapshots whose corrections a sink has and the saved state does not know. A resync is no
// debt, so that its next turn would tell of them once more, when the sink's tail is forgotten (I3).
func (r *run) resumeCorrections() {
	for i := range r.Sources {
		for _, l := range r.listeners {
			if s := &r.Sources[i]; l.delivered.corrected(&s.Stream) {
				s.Request(change.Owed{Sink: l.Name, Reason: change.Resync})
			}
		}
	}
}

// openSink opens one sink at its saved mark, and says whether its log lost acknowledged records.
func (r *run) openSink(ctx context.Context, l *listener) (wasLost bool, err error) {
	mark, _, err := r.Store.Mark(l.Name)
	if err != nil {
		return false, fmt.Errorf("read the mark of sink %s: %w", l.Name, err)
	}
	err = l.open(ctx, mark)
	var lost *sink.LostError
	switch {
	case errors.As(err, &lost):
		r.Observer.Failed(l.Name, err)
	case err != nil:
		return false, fmt.Errorf("open sink %s: %w", l.Name, err)
	}
	return lost != nil, nil
}

// settle saves, before the first record and in one batch, where the sinks stand, which streams each takes, and what it is
// owed: a share of a stream that the state knows, and that the sink did not have, begins with a full snapshot. It forgets
// the sinks that are no longer configured.
func (r *run) settle(lost []bool) error {
	known, err := r.Store.Streams()
	if err != nil {
		return err
	}
	shares, err := r.Store.Shares()
	if err != nil {
		return err
	}
	batch := checkpoint.Batch{Marks: map[string]sink.Mark{}}
	names := make([]string, len(r.listeners))
	for i, l := range r.listeners {
		names[i], batch.Marks[l.Name], r.line.saved[i] = l.Name, l.mark, l.mark
		r.line.marks[i].Written(0, l.mark)
		r.line.durable[i] = l.mark
		r.share(l, shares, &batch)
		if lost[i] {
			batch.Debts = append(batch.Debts, r.debts(l.Name, change.Lost, l.takes)...)
		}
	}
	batch.Debts = slices.DeleteFunc(batch.Debts, func(d checkpoint.Debt) bool { return !slices.Contains(known, d.Stream) })
	if err := r.Store.Commit(batch); err != nil {
		return fmt.Errorf("save the marks of the sinks: %w", err)
	}
	if err := r.leave(known); err != nil {
		return err
	}
	return r.Store.Retain(names)
}

// share compares what the listener's sink takes with the shares that it has.
func (r *run) share(l *listener, shares map[checkpoint.Share]bool, batch *checkpoint.Batch) {
	for _, s := range r.Sources {
		share := checkpoint.Share{Sink: l.Name, Stream: s.Stream.String()}
		switch {
		case !l.takes(&s.Stream):
			batch.Left = append(batch.Left, share)
		case !shares[share]:
			batch.Taken = append(batch.Taken, share)
			batch.Debts = append(batch.Debts, debt(l.Name, share.Stream, change.NewSink))
		}
	}
}

// leave marks the positions of the streams that are not configured any more. Were they to continue there one day, they
// would tell again what another stream of the same objects has told meanwhile.
func (r *run) leave(known []string) error {
	for _, s := range r.Sources {
		known = slices.DeleteFunc(known, func(name string) bool { return name == s.Stream.String() })
	}
	for _, name := range known {
		position, found, err := r.Store.Position(name)
		if err == nil && found && position.Selector != change.NotConfigured {
			position.Selector = change.NotConfigured
			err = r.Store.SetPosition(name, position)
		}
		if err != nil {
			return fmt.Errorf("note that stream %s is not configured: %w", name, err)
		}
	}
	return nil
}
