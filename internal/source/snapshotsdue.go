package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Due are the full snapshots that the stream was asked for and that are not read yet.
func (s *Stream) Due() []change.Owed { return s.schedule.full() }

// Due is Stream.Due of the stream that is read, and what waits for it.
func (s *Session) Due() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		return s.reading.Due()
	}
	return slices.Clone(s.pending)
}
