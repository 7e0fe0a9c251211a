package pipeline

import "time"

// spillTrigger is when a queue that coalesces goes to disk. What waits in it stays in memory, where it merges, until it
// is full, its oldest record is too old, or it holds up others. Then what is in the queue goes to disk, in the batches
// that save its positions, and what comes later merges in memory again, behind it.
//
// A record that has left for disk is one that the sink may have (I3): what comes later of its object supersedes
// nothing, and a delete of it is told. What was merged away before is acknowledged, and its successor is on disk, or in
// line with its position not saved.
type spillTrigger struct {
	merges bool   // the queue coalesces
	newest uint64 // the Seq pushed last
	until  uint64 // what was pushed up to it goes to disk
}

// letGo makes the sink leave if it is stopped and cannot be spooled for.
func (l *listener) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halted {
		l.spool.start()
		l.burdens()
	}
}

func (l *listener) endSpill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if oldest := l.queue.Oldest(); l.finished || l.unsavedTaken() > 0 || oldest != nil && oldest.Seq <= l.spool.trigger.until {
		return
	}
	l.spool.active, l.spool.overcommits = false, false
}

// oldestUnsaved is when the oldest record was received that is neither delivered nor on disk, zero where there is none;
// the caller holds mu. What is on disk does not count where memory goes there only on a trigger.
func (l *listener) oldestUnsaved() time.Time {
	if !l.spool.trigger.merges {
		return l.oldest()
	}
	if l.unsavedTaken() > 0 {
		return l.taken[0].Received
	}
	if rec := l.queue.Oldest(); rec != nil {
		return rec.Received
	}
	return time.Time{}
}
