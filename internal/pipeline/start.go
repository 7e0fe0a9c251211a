package pipeline

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// opened is what opening one sink told.
type opened struct {
	known bool     // the state has a mark of the sink
	lost  bool     // the sink's log lost acknowledged records
	ids   []string // what the log holds behind the mark
}

// open opens all sinks at their marks and applies what their logs know beyond the saved state. It returns when all are
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
	if err := r.saveMarks(); err != nil {
		return err
	}
	resumed, err := r.resumed()
	if err != nil {
		return err
	}
	for i, l := range r.listeners {
		if err := r.fold(results[i].ids); err != nil {
			return err
		}
		switch {
		case results[i].lost:
			r.requestSnapshots(l, change.Lost)
		case !results[i].known && resumed:
			r.requestSnapshots(l, change.NewSink)
		}
	}
	return nil
}

func (r *run) openSink(ctx context.Context, l *listener) (opened, error) {
	mark, known, err := r.Store.Mark(l.Name)
	if err != nil {
		return opened{}, fmt.Errorf("read the mark of sink %s: %w", l.Name, err)
	}
	ids, err := l.open(ctx, mark)
	var lost *sink.LostError
	switch {
	case errors.As(err, &lost):
		r.Observer.Failed(l.Name, err)
	case err != nil:
		return opened{}, fmt.Errorf("open sink %s: %w", l.Name, err)
	}
	return opened{known: known, lost: lost != nil, ids: ids}, nil
}

// saveMarks saves the sinks' present marks before the first record, and lays the ground for later ones.
func (r *run) saveMarks() error {
	marks := map[string]sink.Mark{}
	for i, l := range r.listeners {
		marks[l.Name] = l.mark
		r.line.marks[i].Written(0, l.mark)
	}
	if err := r.Store.Commit(checkpoint.Batch{Marks: marks}); err != nil {
		return fmt.Errorf("save the marks of the sinks: %w", err)
	}
	return nil
}

// resumed says whether the state is an earlier life's: a sink that it does not know has missed something then.
func (r *run) resumed() (bool, error) {
	for _, s := range r.Sources {
		if _, found, err := r.Store.Position(s.Stream.String()); err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// fold applies what a sink's log knows beyond the saved inventory: objects that it was given and that nobody else
// remembers. Without that, one that is deleted before the next list would stay in the sink for ever.
func (r *run) fold(ids []string) error {
	for _, s := range r.Sources {
		entries := leftBehind(ids, &s.Stream)
		if len(entries) == 0 {
			continue
		}
		if err := r.Store.Fold(s.Stream.String(), entries); err != nil {
			return fmt.Errorf("add %d objects found in a sink's log to the inventory of %s: %w", len(entries), s.Stream, err)
		}
	}
	return nil
}

// requestSnapshots asks every stream that the sink takes for a full snapshot.
func (r *run) requestSnapshots(l *listener, reason change.Reason) {
	for _, s := range r.Sources {
		if l.Wants == nil || l.Wants(&s.Stream) {
			s.Request(reason, l.Name)
		}
	}
}
