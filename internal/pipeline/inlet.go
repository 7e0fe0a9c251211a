package pipeline

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/line"
)

// Inlet is the line as a source sees it.
type Inlet struct{ run *run }

// Push puts the record in line: see line.Line.
func (i *Inlet) Push(ctx context.Context, rec *change.Record) error { return i.run.line.Push(ctx, rec) }

// Drain returns when everything that the stream pushed before is delivered and saved, or with ctx's error. What sinks
// that come back have missed is known then.
func (i *Inlet) Drain(ctx context.Context, stream change.Stream) error {
	if err := i.run.line.Drain(ctx, stream); err != nil || !i.run.line.AnyAway() {
		return err
	}
	for _, lst := range i.run.listeners {
		if err := lst.recallMissed(stream.String()); err != nil {
			return err
		}
	}
	return nil
}

// SinkOnly are the stream's objects that a sink's log holds and the saved state does not know, or no longer.
func (i *Inlet) SinkOnly(stream change.Stream) (sinkOnly []change.SinkOnly) {
	for _, lst := range i.run.listeners {
		sinkOnly = append(sinkOnly, lst.recovery.SinkOnly(lst.Name, stream.String())...)
	}
	return sinkOnly
}

// recallMissed finds out what a sink that comes back is to be told of the stream, of which everything is saved.
func (l *listener) recallMissed(stream string) error {
	none := false
	l.recovery.With(func(r *line.Recovery) { none = r.Missed.None() })
	if l.isAway() || l.partly.Load() || l.seat.Reaches(stream) && none {
		return nil
	}
	entries, err := l.store.Missed(checkpoint.Subscription{Sink: l.Name, Stream: stream}, l.clusterUID)
	if err != nil {
		return fmt.Errorf("read what sink %s has missed of %s: %w", l.Name, stream, err)
	}
	l.recovery.With(func(r *line.Recovery) { r.Missed.Replace(stream, entries) })
	return nil
}
