package pipeline

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// progress is what is known of one stream's records.
type progress struct {
	tracker   *checkpoint.Tracker
	takers    uint64 // listeners that were to write any of the stream's records, as a bit mask
	added     uint64 // records put in
	committed uint64 // records that are part of the saved state

	away    uint64         // the listeners that miss the stream, as a bit mask
	returns map[int]uint64 // by listener that comes back: the generation of the snapshot with which it does
}

// progress returns the stream's; the caller holds mu.
func (l *Line) progress(stream string) *progress {
	p := l.streams[stream]
	if p == nil {
		p = &progress{tracker: checkpoint.NewTracker()}
		l.streams[stream] = p
	}
	return p
}

// of returns the progress of the record's stream, nil of one that has none yet. It is asked several times a record, so
// it makes no string of the name, and nearly always the stream is that of the record before. The caller holds mu.
func (l *Line) of(rec *change.Record) *progress {
	if rec.Stream != l.recent || l.found == nil {
		l.name = rec.Stream.AppendString(l.name[:0])
		l.recent, l.found = rec.Stream, l.streams[string(l.name)]
	}
	return l.found
}

// ack records that the listener's sink holds the records durably (I1), and, with a mark, that its log stands there
// after the last of them.
func (l *Line) ack(listener int, batch []*change.Record, mark sink.Mark) error {
	return l.settle(listener, batch, mark, (*checkpoint.Tracker).Ack)
}

// spare records that the listener's sink has the records, or something newer of their objects, since before it was
// opened.
func (l *Line) spare(listener int, batch []*change.Record) error {
	return l.settle(listener, batch, "", (*checkpoint.Tracker).Spare)
}

func (l *Line) settle(listener int, batch []*change.Record, mark sink.Mark, how func(t *checkpoint.Tracker, listener int, seq uint64) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lst, seq := l.listeners[listener], uint64(0)
	for _, rec := range batch {
		if lst.onDisk(rec) {
			continue
		}
		if err := how(l.of(rec).tracker, listener, rec.Seq); err != nil {
			return fmt.Errorf("acknowledge record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
		seq = max(seq, rec.Seq)
	}
	l.keepTold(lst, batch)
	// What is on disk is given again after a crash, until all that was taken with it is delivered: no mark may pass it.
	// And what was written before lies before it, whatever its number: a batch from disk has none, and a queue that
	// coalesces does not rise.
	spools := lst.spools()
	if all := lst.settle(queued(batch)); !all && spools {
		mark = ""
	}
	l.resume[listener].wrote(seq, mark)
	l.wakeCommitter()
	return nil
}

// compare notes that the listener is about to compare records up to seq with what its sink's log held before. Those
// that it holds lie before every mark that comes, also where a record with a lower Seq is written after them; and what
// the log tells of is forgotten on behalf of records that are not delivered yet. So no such mark counts before they are
// saved.
func (l *Line) compare(listener int, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume[listener].compare(seq)
}

// release lets the listener's mark count, unless what is still to be replayed lies before it. Of what is taken and on
// disk some may have been found before it, and after a crash all of it is compared again. The caller holds mu.
func (l *Line) release(listener int) {
	if lst := l.listeners[listener]; lst.recovery.isOver() && !lst.spools() {
		l.resume[listener].release()
	}
}

// save commits the batch, less the marks that a rewind has taken back since advance.
func (l *Line) save(store *checkpoint.Store, batch checkpoint.Batch) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	for i, lst := range l.listeners {
		if mark, found := batch.Marks[lst.Name]; found && mark != l.resume[i].given {
			delete(batch.Marks, lst.Name)
			delete(batch.Carried, lst.Name)
		}
	}
	l.mu.Unlock()
	if err := store.Commit(batch); err != nil {
		return err
	}
	for i, lst := range l.listeners {
		if mark, found := batch.Marks[lst.Name]; found {
			l.isSaved(i, mark)
		}
	}
	return nil
}

// isSaved notes the mark that is saved; the caller holds saving.
func (l *Line) isSaved(listener int, mark sink.Mark) {
	l.durable[listener] = mark
	l.listeners[listener].kept.Store(&mark)
}

// savedMark is where a crash would find the listener's sink.
func (l *Line) savedMark(listener int) sink.Mark {
	l.saving.Lock()
	defer l.saving.Unlock()
	return l.durable[listener]
}

// rewind makes the mark the one to go on from, when the sink is open or its log has lost records; plain is the newest
// one that carries nothing.
func (l *Line) rewind(listener int, mark, plain sink.Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume[listener].rewind(mark, plain)
}

// advance returns what may be saved now, in parts that each may be one batch: the records that every listener
// acknowledged, or that go to disk for it, with all before them (I2), and with the last of them the marks up to which
// nothing will be asked for again.
func (l *Line) advance() []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := collector{line: l}
	spooling := l.spooling()
	for _, p := range l.streams {
		p.tracker.AdvanceOver(spooling, c.give)
	}
	for _, p := range c.parts {
		p.close(l.listeners)
		l.leaving = append(l.leaving, p.records...)
	}
	for _, lst := range l.listeners {
		lst.numbered()
	}
	l.endSpills()
	l.grantOvercommit(spooling)
	last := c.last()
	last.told, l.told = l.told, nil
	for i, lst := range l.listeners {
		if !lst.isBehind() { // what is on disk is still to be compared
			lst.recovery.with(func(r *recovery) {
				r.log.DropOver()
				for _, p := range c.parts {
					r.log.Pass(p.records)
				}
			})
		}
		l.release(i)
		frontier := l.frontier(i)
		point := &l.resume[i]
		if mark, ok := point.next(frontier); ok {
			l.mark(i, mark, last)
			point.plain = mark
			lst.recovery.with(func(r *recovery) { r.log.Compared() })
			if point.carries {
				last.carried[lst.Name], point.carries = carried{}, false
			}
		}
		l.carry(i, frontier, last)
	}
	return c.parts
}

// frontier is the Seq of the oldest record that is not saved, in the streams that the listener takes; the caller holds
// mu.
func (l *Line) frontier(listener int) uint64 {
	frontier, bit := l.number.Last()+1, uint64(1)<<listener
	for _, p := range l.streams {
		if first, ok := p.tracker.First(); ok && p.takers&bit != 0 {
			frontier = min(frontier, first)
		}
	}
	return frontier
}

// mark puts the listener's mark into the part. The caller holds mu.
func (l *Line) mark(listener int, mark sink.Mark, last *part) {
	lst, point := l.listeners[listener], &l.resume[listener]
	last.marks[lst.Name] = mark
	point.give(mark)
	if point.based && lst.recovery.isOver() {
		last.compared, point.based = append(last.compared, lst.Name), false
	}
}

// spooling are the listeners whose records may go to disk, as a bit mask; the caller holds mu.
func (l *Line) spooling() (mask uint64) {
	for i, lst := range l.listeners {
		if lst.spooling() {
			mask |= 1 << i
		}
	}
	return mask
}

// committed tells those who wait that the records are part of the saved state.
func (l *Line) committed(batch []*change.Record) {
	l.images.saved(batch)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rec := range batch {
		l.of(rec).committed++
		l.window.Cancel(rec.Size())
	}
	n := min(len(batch), len(l.leaving)) // they come in the order in which advance gave them
	clear(l.leaving[:n])
	if l.leaving = l.leaving[n:]; len(l.leaving) == 0 {
		l.leaving = nil
	}
	l.signalChanged()
}
