package listener

import (
	"errors"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// acked notes that the sink has the records, all that was taken before them with them, and that its log stands at the
// mark then. The caller holds mu.
func (i *Intake) acked(records []*change.Record, mark string) {
	tracked, whole := i.backlog.Ack(records)
	if len(i.pushed) > 0 {
		i.settleBeside(records)
		i.wakeWaiting()
	}
	for _, rec := range tracked {
		i.enter(rec, acked)
	}
	if len(tracked) < len(records) {
		for _, rec := range records {
			if !slices.Contains(tracked, rec) {
				i.enterRead(rec)
			}
		}
	}
	if whole && mark != "" {
		i.ledger.mark, i.ledger.marked = mark, true
	}
	i.signal()
}

// enter puts what the record says into the ledger. The caller holds mu.
func (i *Intake) enter(rec *change.Record, as entryKind) {
	one, is := i.own[rec.Seq]
	if delete(i.own, rec.Seq); !is {
		item, says := i.itemOf(rec)
		if !says {
			return
		}
		one = entry{Item: item, kept: i.keptOf(rec)}
		if item.Kind == checkpoint.Resolved {
			one.resolved = rec.Received
		}
	}
	one.seq, one.as = rec.Seq, as
	i.ledger.add(one)
}

// enterRead puts what is known of a record that was on disk into the ledger: as much as a log tells of it. The caller
// holds mu.
func (i *Intake) enterRead(rec *change.Record) {
	if rec.Replay != nil {
		return
	}
	id := rec.ID(i.clusterUID)
	if item, says := checkpoint.ItemOf(&id); says {
		i.ledger.add(entry{Item: item, as: logged})
	}
}

// itemOf is what the record tells, false where that is nothing that is saved.
func (i *Intake) itemOf(rec *change.Record) (item checkpoint.Item, says bool) {
	switch {
	case rec.Seq == 0, rec.Replay != nil, rec.Op == change.Actor: // from disk it is saved
		return item, false
	case !rec.Op.OfObject() && rec.Op != change.Bookmark && !(rec.Op == change.Resolved && i.Digest):
		return item, false
	}
	item = toldItem(rec, i.resource.get(rec.Stream), checkpoint.ScopeOf(rec.Stream))
	switch rec.Op {
	case change.Sync:
		item.Kind = checkpoint.Sync
	case change.Bookmark:
		item.Kind = checkpoint.Bookmark
	case change.Resolved:
		item.Kind = checkpoint.Resolved
	}
	if rec.Given != "" {
		item.Given = checkpoint.Point{History: item.At.History, Version: rec.Given}
	}
	return item, true
}

// OverdueWait is how long the committer waits at most until it looks for what is overdue, and goes to disk.
const OverdueWait = fifo.SpillAge / 3

// Take takes what is to be saved out of the intake. What is to go to disk is among it, up to one batch of the disk.
func (i *Intake) Take() *Saving {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := &Saving{}
	i.backlog.SpillOverdue(time.Now())
	if i.backlog.MaySpill() {
		var taken []*change.Record
		taken, s.back = i.backlog.SpillNext(maxSpooled())
		s.taken = taken
		for _, rec := range taken {
			i.enter(rec, spooled)
		}
		s.chunks = i.backlog.Chunks()
	}
	s.ledger, i.ledger = i.ledger, ledger{}
	return s
}

// maxSpooled is how much of a queue goes to disk with one save: after compression it is well below half a memtable,
// above which Pebble makes it a table of its own.
func maxSpooled() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: checkpoint.MaxRecords} }

// apply makes it part of the state, which is to be saved then, and says how the spool is to be. After an error it
// is called again: what is part of the state already changes nothing. The caller holds the Books' lock.
func (i *Intake) apply(s *Saving, spools checkpoint.Spools) error {
	var kept []fifo.Chunk
	i.use(func(b *fifo.Backlog) { s.extent, kept, s.spools = b.Saving(s.chunks) })
	if s.spools {
		spools[i.Name] = checkpoint.Spooled{Chunks: kept, Extent: s.extent}
		i.state.Waits(!s.extent.Empty())
	}
	for at := range s.entries {
		if err := i.applyOne(&s.entries[at]); err != nil {
			return err
		}
	}
	if s.marked {
		i.state.Mark = s.mark
	}
	return nil
}

// applyOne applies an entry. Where the queue coalesces, a newer state may be in the place of an older one, before what
// is between them.
func (i *Intake) applyOne(e *entry) error {
	switch {
	case e.Kind == checkpoint.Resolved:
		digest, counted := i.state.Digest(e.Resource)
		if counted && e.as == acked && e.proof == nil { // else what comes behind it may be applied already
			e.proof = &change.Proof{Digest: digest, Time: e.resolved}
		}
		return nil
	case e.as == logged:
		return i.state.Logged(&e.Item)
	case e.as == spooled:
		return i.state.Spooled(&e.Item)
	}
	return i.state.Acked(&e.Item)
}

// saved notes that the state has what the sink had to save.
func (i *Intake) saved(s *Saving) {
	mark := sink.Mark(i.state.Mark)
	i.savedMark.Store(&mark)
	i.shown.show(s.entries, i.state)
	i.forget(s)
	for _, rec := range s.back {
		i.giveBack(rec)
	}
}

// Completed is a full comparison of a sink whose end is saved.
type Completed struct {
	Sink string
	End  checkpoint.Item
}

// completed are the full comparisons whose ends the sink has.
func (i *Intake) completed(s *Saving) (all []Completed) {
	for at := range s.entries {
		if e := &s.entries[at]; e.Kind == checkpoint.End && e.as != spooled && e.Comparison.Full {
			all = append(all, Completed{i.Name, e.Item})
		}
	}
	return all
}

// forget forgets what was on its way, and is saved.
func (i *Intake) forget(s *Saving) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for at := range s.entries {
		e := &s.entries[at]
		if of := e.Object(); e.seq != 0 && i.told[of].seq == e.seq {
			delete(i.told, of)
		}
		if e.proof != nil {
			i.proofs[part{e.Resource, e.Scope}] = e.proof
		}
	}
	i.settleBeside(s.taken)
	if s.spools {
		i.backlog.Saved(s.extent, s.chunks)
	}
	i.wakeWaiting()
	i.ready.Ring()
	i.signal()
}

// giveBack is the answer to a replay for a sink whose queue goes to disk: the letter is where it was. One that is being
// written to the sink keeps its turn; a crash finds the letter, too.
func (i *Intake) giveBack(rec *change.Record) {
	behind := errors.New("the sink does not keep up, and what is for it goes to disk: try again when kubecdc_spool_bytes is 0")
	i.observer.Replayed(i.Name, rec, behind)
	rec.Replay.Done("", behind)
}
