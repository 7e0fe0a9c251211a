package pipeline

import "time"

// lendAfter is how long a queue that is to go to disk waits for others that keep the positions from moving.
const lendAfter = time.Second

// loosen sees to it that a queue which is to go to disk gets there, or at least holds up nobody, although sinks that
// are not spooled for have not taken what is before it. Those that can be spooled for are, then. Where others hold the
// position, their queues have room, and what all hold together is bounded by the line's window (I6); spooling are the
// listeners that spool now. The caller holds the line's mu.
func (l *Line) loosen(spooling uint64) {
	var holders, merging uint64
	if spooling != 0 {
		holders, merging = l.holders(lendAfter)&^spooling, l.merging()&^l.holders(mergeFor)
	}
	for i, lst := range l.listeners {
		if (holders&^merging)&(1<<i) != 0 && lst.spoolsNow() {
			holders &^= 1 << i
			l.wakeCommitter()
		}
	}
	for _, lst := range l.listeners {
		lst.lend(holders != 0)
	}
}

// spoolsNow starts to spool, where the listener can; false is that it cannot.
func (l *listener) spoolsNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.start()
	return l.spool.takes()
}

// lend lets the queue exceed its limit, or no longer.
func (l *listener) lend(stuck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.lent = stuck && l.spool.takes(); l.spool.lent {
		l.signalFreed()
	}
}
