package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Request asks for full snapshots, each for one sink. It returns at once; a reader gives them beside the watch.
func (s *Stream) Request(owed ...change.Owed) { s.enqueue(owed...) }

// enqueue makes reconciles and full snapshots due. A reconcile for all sinks ends the present watch, and the reader,
// which goes on with the next watch.
func (s *Stream) enqueue(wanted ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owed := range wanted {
		if owed.Reason.Full() {
			s.snapshots.add(owed)
		} else {
			s.reconciles.add(owed)
		}
	}
	if s.reconciles.waits() {
		s.stopWatch()
		s.reader.end()
	}
	s.wakeReader()
}

// isDue says whether a reconcile for all sinks waits or runs.
func (s *Stream) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.reconciles.isEmpty()
}

// awaits says whether a reconcile of the reason waits.
func (s *Stream) awaits(reason change.Reason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.reconciles.due, func(o change.Owed) bool { return o.Reason == reason })
}

// dropComparison forgets a comparison that did not come to its end.
func (s *Stream) dropComparison() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots.dropComparison()
}

// begin returns the reconcile that is due first.
func (s *Stream) begin() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reconciles.begin()
}

// done ends the reconcile that begin returned.
func (s *Stream) done(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciles.done(failed)
}
