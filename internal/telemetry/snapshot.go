package telemetry

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// snapshotState is how far a snapshot is that is being read. It is replaced, never changed.
type snapshotState struct {
	Reason  change.Reason `json:"reason"`
	Sinks   []string      `json:"sinks,omitempty"` // none is all
	Limits  change.Limits `json:"limits,omitzero"`
	Since   time.Time     `json:"since"`
	Objects int           `json:"objects"`           // that were listed
	Percent *int          `json:"percent,omitempty"` // of all; nil is not known

	expected int // objects in the inventory when it began, unknownCount where nobody had counted them
}

// listed is the state behind another page. A server that has selectors does not say how many objects remain: then they
// are expected to be as many as there were.
func (s *snapshotState) listed(n int, remaining int64) *snapshotState {
	next := *s
	next.Objects += n
	switch all := int64(next.Objects) + remaining; {
	case remaining == 0:
		next.Percent = percent(1, 1)
	case remaining > 0:
		next.Percent = percent(int64(next.Objects), all)
	case next.expected > 0:
		next.Percent = percent(int64(min(next.Objects, next.expected)), int64(next.expected)+1)
	}
	return &next
}

// percent rounds down: only all is a hundred.
func percent(part, of int64) *int {
	n := int(part * 100 / of)
	return &n
}

// beginSnapshot shows the snapshot; the caller holds mu.
func (s *streamState) beginSnapshot(snapshot *change.Snapshot) {
	s.Snapshot = &snapshotState{Reason: snapshot.Reason, Sinks: snapshot.Sinks, Limits: snapshot.Limits, Since: time.Now(), expected: s.objects}
	if snapshot.Limits != (change.Limits{}) {
		s.Snapshot.expected = unknownCount
	}
	s.given = nil
}

// endSnapshot shows it no more, and returns how many objects were listed; the caller holds mu.
func (s *streamState) endSnapshot() (objects int) {
	if s.Snapshot != nil {
		objects = s.Snapshot.Objects
	}
	s.given, s.Snapshot = s.Snapshot, nil
	return objects
}

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
	s.sign, s.Snapshot = time.Now(), nil
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
