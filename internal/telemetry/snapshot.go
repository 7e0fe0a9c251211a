package telemetry

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Listed is told of a page of a snapshot's list: its objects, and how many remain, below 0 where that is not known.
func (t ofStreams) Listed(stream change.Stream, n int, remaining int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	if s.Snapshot != nil {
		s.Snapshot = s.Snapshot.listed(n, remaining)
	}
}

// Abandoned is told that a full snapshot is read no more, although it is not complete.
func (t ofStreams) Abandoned(stream change.Stream, snapshot *change.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	given := s.given
	s.endSnapshot(snapshot.Sinks)
	s.given = given
	if g := t.states.gaps.find(stream, snapshot); g != nil {
		t.breakOff(g)
	}
	t.Logger.Info("snapshot ended before it was complete", "resource", stream.String(), "reason", snapshot.Reason, "sinks", snapshot.Sinks)
}

// Progress is how far a snapshot for one sink is.
type Progress struct {
	Read    bool // to its end: the sink may still be given the rest
	Objects int
	Percent *int // nil is not known
}

// Progress of the snapshot that the stream is read for, or was read for last, false where that is another one.
func (t shown) Progress(stream string, owed change.Owed) (p Progress, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.streams[stream]
	if s == nil {
		return p, false
	}
	for _, of := range []*snapshotState{s.Snapshot, s.given} {
		if of != nil && of.Reason == owed.Reason && of.Limits == owed.Limits && (of.Sinks == nil || slices.Contains(of.Sinks, owed.Sink)) {
			return Progress{Read: of == s.given, Objects: of.Objects, Percent: of.Percent}, true
		}
	}
	return p, false
}
