package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Request asks for full snapshots, each for one sink. It returns at once; the watch ends and continues where it was
// after the snapshots.
func (s *Stream) Request(owed ...change.Owed) { s.enqueue(owed...) }

// enqueue adds reconciles and ends the present watch. One that waits already, or runs for the same generation, is not
// added again; one of an older generation that waits is replaced.
func (s *Stream) enqueue(wanted ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owed := range wanted {
		if owed.Reason.Full() && slices.Contains(s.due[:s.running], owed) {
			continue
		}
		waiting := s.due[s.running:]
		if i := slices.IndexFunc(waiting, owed.Same); i >= 0 {
			waiting[i] = owed
			continue
		}
		at := len(s.due)
		// what is for all comes first: an exact list of another cluster's position proves nothing
		if !owed.Reason.Full() {
			for at > s.running && s.due[at-1].Reason.Full() {
				at--
			}
		}
		s.due = slices.Insert(s.due, at, owed)
	}
	if len(s.due) > s.running {
		s.stopWatch()
	}
}

// isDue says whether a reconcile waits or runs.
func (s *Stream) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due) > 0
}

// isSuperseded says whether another reconcile for all sinks waits behind the one that runs.
func (s *Stream) isSuperseded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.due[s.running:], func(o change.Owed) bool { return !o.Reason.Full() })
}

// begin returns the reconciles that are due first: one, or all full snapshots of one reason, which share a list. They
// stay due until done says that they succeeded.
func (s *Stream) begin() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return nil
	}
	first := s.due[0]
	together := func(o change.Owed) bool {
		// each has its own gap
		return o == first || first.Reason.Full() && o.Reason == first.Reason && o.Reason != change.Absent
	}
	slices.SortStableFunc(s.due, func(a, b change.Owed) int {
		switch {
		case together(a) == together(b):
			return 0
		case together(a):
			return -1
		}
		return 1
	})
	s.running = 1
	for s.running < len(s.due) && together(s.due[s.running]) {
		s.running++
	}
	return slices.Clone(s.due[:s.running])
}

// done ends the reconciles that begin returned, and takes them off the list unless they failed.
func (s *Stream) done(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		s.due = slices.Delete(s.due, 0, s.running)
	}
	s.running = 0
	if failed {
		s.dropOlder()
	}
}

// dropOlder leaves of each pending snapshot the generation that is asked for last: the older one ran, and would now be
// in one snapshot with it. The caller holds mu.
func (s *Stream) dropOlder() {
	var kept []change.Owed
	for i, owed := range s.due {
		if !slices.ContainsFunc(s.due[i+1:], owed.Same) {
			kept = append(kept, owed)
		}
	}
	s.due = kept
}
