package pipeline

import (
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// shut are the snapshots that are not asked for yet, since their sinks' formats are not ready.
type shut struct {
	mu  sync.Mutex // guards the following
	all []checkpoint.PendingSnapshot
}

// add notes the snapshot, once.
func (s *shut) add(d checkpoint.PendingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.all, isSame(d)) {
		s.all = append(s.all, d)
	}
}

// take removes the snapshot. It is false where somebody else has taken it, who asks for it then.
func (s *shut) take(d checkpoint.PendingSnapshot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.all)
	s.all = slices.DeleteFunc(s.all, isSame(d))
	return len(s.all) < before
}

// of are those of the sink.
func (s *shut) of(sinkName string) (all []checkpoint.PendingSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.all {
		if d.Sink == sinkName {
			all = append(all, d)
		}
	}
	return all
}

// isSame says whether another is the same snapshot of the same stream.
func isSame(d checkpoint.PendingSnapshot) func(checkpoint.PendingSnapshot) bool {
	return func(other checkpoint.PendingSnapshot) bool { return d.Stream == other.Stream && d.Same(other.Owed) }
}
