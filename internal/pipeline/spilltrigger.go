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

// mergeFor is the age of the oldest record at which a queue that coalesces goes to disk for the sake of others that
// wait: below it what can be merged is.
const mergeFor = 5 * time.Second

// holders are the listeners that have not taken the oldest record of some stream for so long, as a bit mask. The caller
// holds the line's mu.
func (l *Line) holders(age time.Duration) (mask uint64) {
	now := time.Now()
	for _, p := range l.streams {
		if since, missing, waits := p.tracker.Waits(); waits && now.Sub(since) >= age {
			mask |= missing
		}
	}
	return mask
}

// merging are the listeners whose queues coalesce, as a bit mask.
func (l *Line) merging() (mask uint64) {
	for i, lst := range l.listeners {
		if lst.Coalesce {
			mask |= 1 << i
		}
	}
	return mask
}

// spillForWaiting starts to spool for the listeners that others wait for, where they can be spooled for: the line's
// window is full, or a reconcile needs everything saved that came before it.
func (l *Line) spillForWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	holders := l.holders(mergeFor)&l.merging() | l.holders(spoolAfter)
	stopped := l.holders(mergeFor)
	for i, lst := range l.listeners {
		if holders&(1<<i) != 0 && lst.spoolsNow() {
			l.wakeCommitter()
		} else if stopped&(1<<i) != 0 {
			lst.letGo()
		}
	}
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

// endSpills ends the spooling of queues that coalesce, when what triggered it is on disk. The caller holds the
// line's mu.
func (l *Line) endSpills() {
	for _, lst := range l.listeners {
		if lst.Coalesce {
			lst.endSpill()
		}
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
