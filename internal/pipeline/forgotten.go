package pipeline

import (
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/line"
)

// forgotten are the streams that the state did not know when it was opened. A sink's log should hold nothing of them,
// since a stream's position is saved before anything is told of it. Where a log does hold something, the state is an
// earlier one, which was put back (I11). Nobody knows how far that stream was read, so it owes a gap (I4).
type forgotten struct {
	mu      sync.Mutex // guards the following; sinks are joined by several goroutines
	streams map[string]bool
}

func newForgotten(sources []Source, known []string) *forgotten {
	f := &forgotten{streams: map[string]bool{}}
	for _, s := range sources {
		if name := s.Stream.String(); !slices.Contains(known, name) {
			f.streams[name] = true
		}
	}
	return f
}

// look asks for a comparison behind a gap of each stream that the listener's sink knows, and the state did not.
func (f *forgotten) look(l *listener, sources []Source) {
	for _, s := range sources {
		known := false
		l.Recovery.With(func(r *line.Recovery) { known = r.Log.Expects(s.Stream.String()) })
		if known && f.take(s.Stream.String()) {
			s.Request(change.Owed{Reason: change.Stale})
		}
	}
}

// take says whether the stream was forgotten, once.
func (f *forgotten) take(stream string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.streams[stream]
	delete(f.streams, stream)
	return was
}
