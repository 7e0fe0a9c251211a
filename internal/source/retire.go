package source

import (
	"cmp"
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// retire is the reconcile with a resource whose definition was deleted, as of the version: everything that the sinks
// have of it is gone. Where they have something, the watch has not told all, and the rest can be known by nobody: so it
// is a gap (I4). Else they are told the end alone, and where nothing was ever told, nothing. It returns when all is
// delivered and saved.
func (s *Stream) retire(ctx context.Context, line Line, version string) error {
	s.line = line
	if err := s.drain(ctx); err != nil {
		return err
	}
	// What is told is of the history that was delivered, also where another cluster, which lacks the resource, has
	// taken its place: so the ids are the same whenever that is noticed (I8).
	if delivered := s.Saved.Epoch; delivered != "" && delivered != change.Interrupted {
		s.epoch = delivered
	}
	sinkOnly := line.SinkOnly(s.stream)
	position := s.cursor.position.ResourceVersion
	unseen := len(sinkOnly) > 0 || !s.isEmpty()
	if position == "" && !unseen {
		return nil
	}
	r := s.newRelist(change.Owed{Reason: change.Removed}, cmp.Or(version, position, "0"), sinkOnly)
	defer r.inventory.close()
	if unseen {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	return line.Drain(ctx, s.stream)
}
