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
	results := make([]opened, len(r.listeners))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, l := range r.listeners {
		group.Go(func() (err error) {
			results[i], err = r.openSink(groupCtx, l)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.settleMarks(results); err != nil {
		return err
	}
	return r.requestOwed()
}

// opened is what opening one sink told.
type opened struct {
	known bool // the state has a mark of the sink
	lost  bool // the sink's log lost acknowledged records
}

func (r *run) openSink(ctx context.Context, l *listener) (opened, error) {
	mark, known, err := r.Store.Mark(l.Name)
	if err != nil {
		return opened{}, fmt.Errorf("read the mark of sink %s: %w", l.Name, err)
	}
	err = l.open(ctx, mark)
	var lost *sink.LostError
	switch {
	case errors.As(err, &lost):
		r.Observer.Failed(l.Name, err)
	case err != nil:
		return opened{}, fmt.Errorf("open sink %s: %w", l.Name, err)
	}
	return opened{known: known, lost: lost != nil}, nil
}

// settleMarks saves the sinks' present marks before the first record, and in the same batch what each is owed: a sink
// that has a mark is no new one any more. It forgets the sinks that are no longer configured.
func (r *run) settleMarks(results []opened) error {
	known, err := r.Store.Streams()
	if err != nil {
		return err
	}
	batch := checkpoint.Batch{Marks: map[string]sink.Mark{}}
	names := make([]string, len(r.listeners))
	for i, l := range r.listeners {
		names[i], batch.Marks[l.Name] = l.Name, l.mark
		r.line.marks[i].Written(0, l.mark)
		r.line.saved[i] = l.mark
		switch {
		case results[i].lost:
			batch.Debts = append(batch.Debts, r.debts(l, change.Lost, known)...)
		case !results[i].known:
			batch.Debts = append(batch.Debts, r.debts(l, change.NewSink, known)...)
		}
	}
	if err := r.Store.Commit(batch); err != nil {
		return fmt.Errorf("save the marks of the sinks: %w", err)
	}
	return r.Store.Retain(names)
}

// debts are the snapshots that the listener's sink needs: of the streams that it takes and that the state knows. A stream
// that the state does not know begins with a snapshot for all.
func (r *run) debts(l *listener, reason change.Reason, known []string) []checkpoint.Debt {
	var debts []checkpoint.Debt
	for _, s := range r.Sources {
		if (l.Wants == nil || l.Wants(&s.Stream)) && slices.Contains(known, s.Stream.String()) {
			debts = append(debts, checkpoint.Debt{Sink: l.Name, Stream: s.Stream.String(), Reason: reason})
		}
	}
	return debts
}

// requestOwed asks the streams for every snapshot that is owed, also from earlier lives.
func (r *run) requestOwed() error {
	debts, err := r.Store.Debts()
	if err != nil {
		return err
	}
	for _, debt := range debts {
		for _, s := range r.Sources {
			if s.Stream.String() == debt.Stream {
				s.Request(debt.Reason, debt.Sink)
			}
		}
	}
	return nil
}

// oweLost makes sure that a sink whose log lost records while running gets a full snapshot of every stream: any of them
// may have written there.
func (r *run) oweLost(l *listener) error {
	var all []string
	for _, s := range r.Sources {
		all = append(all, s.Stream.String())
	}
	if err := r.Store.Commit(checkpoint.Batch{Debts: r.debts(l, change.Lost, all)}); err != nil {
		return fmt.Errorf("note that sink %s is owed a snapshot: %w", l.Name, err)
	}
	return r.requestOwed()
}
