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

// acked notes that the sink has the records, and that its log is at the mark then. The caller holds mu.
func (i *Intake) acked(records []*change.Record, mark string) {
	unspooled, whole := i.backlog.Ack(records)
	if len(i.pushed) > 0 {
		i.settlePushed(records)
		i.wakeWaiting()
	}
	for _, rec := range unspooled {
		i.enter(rec, acked)
	}
	if len(unspooled) < len(records) {
		for _, rec := range records {
			if !slices.Contains(unspooled, rec) {
				i.enterRead(rec)
			}
		}
	}
	if whole && mark != "" {
		i.ledger.mark, i.ledger.marked = mark, true
	}
	i.signal()
}

// enter adds what the record says to the ledger. The caller holds mu.
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

// enterRead adds what the id of a record from disk says to the ledger, as if it was found in the log. The caller holds
// mu.
func (i *Intake) enterRead(rec *change.Record) {
	if rec.Replay != nil {
		return
	}
	id := rec.ID(i.clusterUID)
	if item, says := checkpoint.ItemOf(&id); says {
		i.ledger.add(entry{Item: item, as: logged})
	}
}

// itemOf is the item of the record; says is false if nothing of it is saved.
func (i *Intake) itemOf(rec *change.Record) (item checkpoint.Item, says bool) {
	switch {
	case rec.Seq == 0, rec.Replay != nil, rec.Op == change.Actor: // with Seq 0 it is from disk, and saved
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

// OverdueWait is how often the committer looks for records that are overdue, and have to go to disk.
const OverdueWait = fifo.SpillAge / 3

// Take takes what is to be saved out of the intake, with what is to go to disk, up to maxSpooled.
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

// maxSpooled is how much of a queue goes to disk with one save. Compressed, it is well below half a memtable; Pebble
// makes a table of its own of a larger batch.
func maxSpooled() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: checkpoint.MaxRecords} }

// apply makes it part of the state, which has to be saved then, and adds the spool to spools. After an error it is
// called again: what is part of the state already changes nothing. The caller holds the Books' lock.
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

// applyOne applies an entry.
func (i *Intake) applyOne(e *entry) error {
	switch {
	case e.Kind == checkpoint.Resolved:
		digest, counted := i.state.Digest(e.Resource)
		if counted && e.as == acked && e.proof == nil { // after a failed attempt, later entries may be applied already
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

// completed are the full comparisons whose ends were saved.
func (i *Intake) completed(s *Saving) (all []Completed) {
	for at := range s.entries {
		if e := &s.entries[at]; e.Kind == checkpoint.End && e.as != spooled && e.Comparison.Full {
			all = append(all, Completed{i.Name, e.Item})
		}
	}
	return all
}

// forget forgets what was on its way and is saved now.
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
	i.settlePushed(s.taken)
	if s.spools {
		i.backlog.Saved(s.extent, s.chunks)
	}
	i.wakeWaiting()
	i.ready.Ring()
	i.signal()
}

// giveBack answers a replay for a sink whose queue goes to disk: the letter is where it was. One that is being written
// to the sink is still delivered; after a crash its letter is found.
func (i *Intake) giveBack(rec *change.Record) {
	behind := errors.New("the sink does not keep up, and what is for it goes to disk: try again when kubecdc_spool_bytes is 0")
	i.observer.Replayed(i.Name, rec, behind)
	rec.Replay.Done("", behind)
}
