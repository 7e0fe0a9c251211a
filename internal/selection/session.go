package selection

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/source"
)

// SourceOf makes the session the pipeline's source of the stream.
func SourceOf(stream change.Stream, session *source.Session, shape func(*change.Record)) pipeline.Source {
	return pipeline.Source{
		Stream: stream,
		Run: func(ctx context.Context, line *pipeline.Inlet) error {
			over, err := session.Run(ctx, line)
			if over {
				return pipeline.ErrOver
			}
			return err
		},
		Request:  session.Request,
		Withdraw: session.Withdraw,
		Due:      session.Due,
		Shape:    shape,
	}
}

// SavedOf is what the stream of the name goes on from. What is owed to a sink that is not configured waits: nobody
// would take the snapshot.
func SavedOf(store *checkpoint.Store, stream string, configured func(sinkName string) bool) (source.Saved, error) {
	position, _, err := store.Position(stream)
	if err != nil {
		return source.Saved{}, fmt.Errorf("read the position of %s: %w", stream, err)
	}
	pendingSnapshots, err := store.PendingSnapshots()
	if err != nil {
		return source.Saved{}, fmt.Errorf("read the pending snapshots of %s: %w", stream, err)
	}
	saved := source.Saved{Position: position}
	for _, d := range pendingSnapshots {
		if d.Stream == stream && configured(d.Sink) && !d.Paused {
			saved.Owed = append(saved.Owed, d.Owed)
		}
	}
	return saved, nil
}
