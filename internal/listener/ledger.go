package listener

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Saving is what one save has of a sink: what it has acknowledged, and what goes to disk for it.
type Saving struct {
	items  []checkpoint.Item
	seqs   []uint64
	mark   string
	marked bool
	chunks []fifo.Chunk
	extent fifo.Spool
	spools bool // the spool is another one than the state has
	back   []*change.Record
	taken  []*change.Record // what goes to disk
}

// untold is what the state is told of that the sink is not given after all, and what it has of the object in its place.
// That is saved with the removal from disk: until then the sink may take it again.
type untold struct {
	checkpoint.Item
	was checkpoint.Row
}

// maxUnsaved is how much the ledger of a sink holds in memory at most, in bytes, about: while the state cannot be saved
// the sink is given nothing more (I6).
const maxUnsaved = 8 << 20

// itemBytes is what an item takes beside the names of its object, about.
const itemBytes = 320

// acked notes that the sink has the records, all that was taken before them with them, and that its log stands at the
// mark then. The caller holds mu.
func (i *Intake) acked(records []*change.Record, mark string) {
	tracked, whole := i.backlog.Ack(records)
	if len(i.beside) > 0 {
		i.beside.settle(records)
		i.wakeWaiting()
	}
	for _, rec := range tracked {
		i.enter(rec)
	}
	if whole {
		i.left, i.leaving = append(i.left, i.leaving...), nil
	}
	if whole && mark != "" {
		i.ledger.mark, i.ledger.marked = mark, true
	}
	i.signal()
}

// enter puts what the record says into the ledger. The caller holds mu.
func (i *Intake) enter(rec *change.Record) {
	item, says := i.own[rec.Seq]
	if says {
		delete(i.own, rec.Seq)
	} else if item, says = i.itemOf(rec); !says {
		return
	}
	l := &i.ledger
	l.items, l.seqs = append(l.items, item), append(l.seqs, rec.Seq)
	l.size += itemBytes + len(item.Key.Namespace) + len(item.Key.Name)
}

// itemOf is what the record tells, false where that is nothing that is saved.
func (i *Intake) itemOf(rec *change.Record) (item checkpoint.Item, says bool) {
	switch {
	case rec.Seq == 0, rec.Replay != nil, rec.Op == change.Actor: // from disk it is saved
		return item, false
	case !rec.Op.OfObject() && rec.Op != change.Bookmark:
		return item, false
	}
	item = checkpoint.Item{
		Kind: checkpoint.Told, Resource: i.resource.get(rec.Stream), Scope: checkpoint.ScopeOf(rec.Stream), At: pointOf(rec, rec.ResourceVersion),
		Key: rec.Key, UID: rec.UID, Gone: rec.Op == change.Deleted,
	}
	switch rec.Op {
	case change.Sync:
		item.Kind = checkpoint.Sync
	case change.Bookmark:
		item.Kind = checkpoint.Bookmark
	}
	if rec.Given != "" {
		item.Given = checkpoint.Point{History: item.At.History, Version: rec.Given}
	}
	return item, true
}

// Take takes what is to be saved out of the intake. What is to go to disk is among it, up to one batch of the disk.
func (i *Intake) Take() *Saving {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := &Saving{}
	if i.backlog.MaySpill() {
		var taken []*change.Record
		taken, s.back = i.backlog.SpillNext(maxSpooled())
		s.taken = taken
		for _, rec := range taken {
			i.enter(rec)
		}
		s.chunks = i.backlog.Chunks()
	}
	l := &i.ledger
	s.items, s.seqs, s.mark, s.marked = l.items, l.seqs, l.mark, l.marked
	l.drop()
	return s
}

// maxSpooled is how much of a queue goes to disk with one save: after compression it is well below half a memtable,
// above which Pebble makes it a table of its own.
func maxSpooled() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: checkpoint.MaxRecords} }

// Chunks are what goes to disk, whose values the store encodes.
func (s *Saving) Chunks() []fifo.Chunk { return s.chunks }

// Apply makes it part of the state, which is to be saved then, and says how the spool is to be. It is called once.
func (i *Intake) Apply(s *Saving, state *checkpoint.SinkState, spools *checkpoint.Spools) error {
	var kept []fifo.Chunk
	var left []untold
	i.use(func(b *fifo.Backlog) {
		s.extent, kept, s.spools = b.Saving(s.chunks)
		left, i.left = i.left, nil
	})
	for at := range left {
		if err := state.Untold(&left[at].Item, left[at].was); err != nil {
			return err
		}
	}
	if s.spools {
		spools.Extents[i.Name], spools.Chunks[i.Name] = s.extent, kept
		if len(kept) > 0 {
			if err := state.Spooled(true, state); err != nil {
				return err
			}
		}
	}
	tell := state.Told
	if i.Coalesce {
		tell = state.Found // a newer state may be in the place of an older one, before what is between them
	}
	for at := range s.items {
		if err := tell(&s.items[at]); err != nil {
			return err
		}
	}
	if s.marked {
		state.Mark = s.mark
	}
	if s.spools {
		return state.Spooled(!s.extent.Empty(), state)
	}
	return nil
}

// IsEmpty says whether there is nothing to save.
func (s *Saving) IsEmpty() bool {
	return len(s.items) == 0 && !s.marked && len(s.chunks) == 0 && !s.spools
}

// Saved notes that the state has it.
func (i *Intake) Saved(s *Saving) {
	for at := range s.items {
		if s.items[at].Kind == checkpoint.End {
			i.ended(i.Name, &s.items[at])
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for at, seq := range s.seqs {
		item := &s.items[at]
		if of := item.Object(); item.Kind == checkpoint.Told && i.told[of].seq == seq {
			delete(i.told, of)
		}
	}
	i.beside.settle(s.taken)
	if s.spools {
		i.backlog.Saved(s.extent, s.chunks)
	}
	i.wakeWaiting()
	select {
	case i.ready <- struct{}{}:
	default:
	}
	i.signal()
}
