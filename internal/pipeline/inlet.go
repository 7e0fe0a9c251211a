package pipeline

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
)

// Inlet is the line as a source sees it.
type Inlet struct {
	line      *line.Line
	listeners []*listener
}

// Push puts the record in line: see line.Line.
func (i *Inlet) Push(ctx context.Context, rec *change.Record) error {
	return i.line.Push(ctx, rec)
}

// Drain returns when everything that the stream pushed before is delivered and saved, or with ctx's error. What sinks
// that come back have missed is known then.
func (i *Inlet) Drain(ctx context.Context, stream change.Stream) error {
	if err := i.line.Drain(ctx, stream); err != nil || !i.line.AnyAway() {
		return err
	}
	for _, lst := range i.listeners {
		if err := lst.RecallMissed(stream.String()); err != nil {
			return err
		}
	}
	return nil
}

// SinkOnly are the stream's objects that a sink's log holds and the saved state does not know, or no longer.
func (i *Inlet) SinkOnly(stream change.Stream) (sinkOnly []change.SinkOnly) {
	for _, lst := range i.listeners {
		sinkOnly = append(sinkOnly, lst.Recovery.SinkOnly(lst.Name, stream.String())...)
	}
	return sinkOnly
}

// Pace returns when the sink has taken what is before a snapshot: see line.Line.
func (i *Inlet) Pace(ctx context.Context, stream *change.Stream, sinkName string, most int) (waited bool, err error) {
	return i.line.Pace(ctx, stream, sinkName, most)
}
