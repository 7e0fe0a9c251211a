package line

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/fifo"
)

// masked is what the predicate holds of, as a bit mask.
func masked(seats []*seat, holds func(*seat) bool) (mask uint64) {
	for _, s := range seats {
		if holds(s) {
			mask |= s.bit()
		}
	}
	return mask
}

func coalesces(s *seat) bool { return s.Coalesce }

// relieve starts to spool for the listeners that others wait for, where they can be spooled for: the line's window is
// full, or a reconcile needs everything saved that came before it. It says whether the committer has work. The caller
// holds the line's mu.
func relieve(seats []*seat, of *streams) (wake bool) {
	now := time.Now()
	stopped := of.holders(now, MergeFor)
	holders := stopped&masked(seats, coalesces) | of.holders(now, fifo.SpillAge)
	for _, s := range seats {
		if holders&s.bit() != 0 && s.Patience.SpillNow() {
			wake = true
		} else if stopped&s.bit() != 0 {
			s.Patience.LetGo()
		}
	}
	return wake
}

// overcommit sees to it that a queue which is to go to disk gets there, or at least holds up nobody, although sinks
// that are not spooled for have not taken what is before it. Those that can be spooled for are, then. Where others hold
// the position, their queues have room, and what all hold together is bounded by the line's window (I6); spooling are
// the listeners that spool now. It says whether the committer has work. The caller holds the line's mu.
func overcommit(seats []*seat, of *streams, spooling uint64) (wake bool) {
	var holders, merging uint64
	if spooling != 0 {
		now := time.Now()
		holders = of.holders(now, OvercommitAfter) &^ spooling
		merging = masked(seats, coalesces) &^ of.holders(now, MergeFor)
	}
	for _, s := range seats {
		if (holders&^merging)&s.bit() != 0 && s.Patience.SpillNow() {
			holders &^= s.bit()
			wake = true
		}
	}
	for _, s := range seats {
		s.Patience.Overcommit(holders != 0)
	}
	return wake
}
