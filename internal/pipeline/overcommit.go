package pipeline

import "time"

// overcommitAfter is how long a queue that is to go to disk waits for others that keep the positions from moving.
const overcommitAfter = time.Second

// grantOvercommit sees to it that a queue which is to go to disk gets there, or at least holds up nobody, although
// sinks that are not spooled for have not taken what is before it. Those that can be spooled for are, then. Where
// others hold the position, their queues have room, and what all hold together is bounded by the line's window (I6);
// spooling are the listeners that spool now. The caller holds the line's mu.
func (l *Line) grantOvercommit(spooling uint64) {
	var holders, merging uint64
	if spooling != 0 {
		holders, merging = l.holders(overcommitAfter)&^spooling, l.merging()&^l.holders(mergeFor)
	}
	for i, lst := range l.listeners {
		if (holders&^merging)&(1<<i) != 0 && lst.spoolsNow() {
			holders &^= 1 << i
			l.wakeCommitter()
		}
	}
	for _, lst := range l.listeners {
		lst.grantOvercommit(holders != 0)
	}
}

// spoolsNow starts to spool, where the listener can; false is that it cannot.
func (l *listener) spoolsNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.start()
	return l.spool.takes()
}

// grantOvercommit lets the queue exceed its limit while somebody is stuck, and revokes that afterwards.
func (l *listener) grantOvercommit(stuck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.overcommits = stuck && l.spool.takes(); l.spool.overcommits {
		l.signalFreed()
	}
}
