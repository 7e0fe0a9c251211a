package source

import (
	"context"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Withdraw makes full snapshots due no more. One that is read is over soon, and has no end. Others that share its list
// begin anew.
func (s *Stream) Withdraw(owed ...change.Owed) { s.schedule.withdraw(owed) }

// cutOff ends one snapshot while nobody has the turn: what is told of an object is told whole.
func (s *Stream) cutOff(one context.Context, end context.CancelFunc) {
	if give, err := s.turns.takeIn(one); err == nil {
		end()
		give()
	}
}

// drop takes the owed off the list, and says whether any of it is being run.
func (a *agenda) drop(owed []change.Owed) (runs bool) {
	dropped := func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) }
	running := slices.DeleteFunc(slices.Clone(a.due[:a.running]), dropped)
	waiting := slices.DeleteFunc(slices.Clone(a.due[a.running:]), dropped)
	runs = len(running) < a.running
	a.due, a.running = append(running, waiting...), len(running)
	return runs
}

// Withdraw is Stream.Withdraw, and makes them due no more for later streams of the session either, until they are
// asked for again.
func (s *Session) Withdraw(owed ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) }
	s.withdrawn = append(slices.DeleteFunc(s.withdrawn, dropped), owed...)
	s.pending = slices.DeleteFunc(s.pending, dropped)
	if s.reading != nil {
		s.reading.Withdraw(owed...)
	}
}

// isWithdrawn says whether what was saved is withdrawn since; the caller holds mu.
func (s *Session) isWithdrawn(saved change.Owed) bool {
	return slices.ContainsFunc(s.withdrawn, func(o change.Owed) bool { return o.Same(saved) && o.Generation == saved.Generation })
}

// wants notes that the owed is asked for; the caller holds mu.
func (s *Session) wants(owed []change.Owed) {
	s.withdrawn = slices.DeleteFunc(s.withdrawn, func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) })
}
