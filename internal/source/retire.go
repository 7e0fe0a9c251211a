package source

import (
	"cmp"
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// retire is the reconcile with a resource that is not served any more: everything that the sinks have of it is gone.
// What the watch had not told of it before can be known by nobody, so it is a gap (I4). Where the sinks have
// nothing and nothing was ever told, there is nothing to say. It returns when all is delivered and saved.
func (s *Stream) retire(ctx context.Context, line Line) error {
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
	if position == "" && len(sinkOnly) == 0 && s.isEmpty() {
		return nil
	}
	r := s.newRelist(change.Owed{Reason: change.Gone}, cmp.Or(position, "0"), sinkOnly)
	defer r.inventory.close()
	r.snapshot.Unserved, r.parts[0].snapshot.Unserved = true, true
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	return line.Drain(ctx, s.stream)
}
