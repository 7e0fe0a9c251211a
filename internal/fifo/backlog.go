package fifo

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OldestOf is when the oldest record of each stream was received that is neither delivered nor on disk, by the stream's
// name.
func (b *Backlog) OldestOf() map[string]time.Time {
	oldest := map[string]time.Time{}
	var last *change.Stream
	note := func(rec *change.Record) {
		if rec == nil || rec.Stream == nil || rec.Stream == last {
			return
		}
		last = rec.Stream
		name := last.String()
		if known, is := oldest[name]; !is || rec.Received.Before(known) {
			oldest[name] = rec.Received
		}
	}
	for _, rec := range b.flight.records {
		if b.flight.read == nil && !b.flight.onDisk(rec) {
			note(rec)
		}
	}
	for _, place := range b.queue.places {
		note(place.rec)
	}
	return oldest
}

// Backlog is everything that was pushed for one sink and that the sink does not have, as one state machine: a queue in
// memory, a spool on disk before it, and before both the flight.
//
//	Reserve -> Push -> Take -> Ack
//	             |      ^
//	             v      |
//	           Spill -> Saving -> Saved -> TakeRead
//
// It does no I/O: it says what is to be on disk, and is told what is there. After each call Signals says who has to be
// woken.
type Backlog struct {
	queue    *Queue
	spool    spool
	flight   flight
	trigger  trigger
	batch    Limit
	finished bool // nothing more will be pushed
	signals  Signals
}

// Options are how a backlog works.
type Options struct {
	Queue    Limit // in memory
	Coalesce bool  // the queue in memory merges the records of an object
	Spool    int64 // bytes on disk; 0 is a backlog that never spills
	Batch    Limit // of what is taken at once, and of a chunk on disk
}

// Signals say who has to be woken after a call.
type Signals struct {
	Freed   bool // those who wait for room
	Ready   bool // the one who takes
	Changed bool // the observer of the Levels
}

// NewBacklog returns an empty backlog.
func NewBacklog(o Options) *Backlog {
	q := NewQueue(o.Queue)
	if o.Coalesce {
		q = newCoalescing(o.Queue)
	}
	return &Backlog{
		queue: q, batch: o.Batch,
		flight:  flight{ahead: map[uint64]struct{}{}},
		trigger: trigger{limit: o.Spool, merges: o.Coalesce},
	}
}

// Signals are those of all calls since Signals was called last.
func (b *Backlog) Signals() Signals {
	signals := b.signals
	b.signals = Signals{}
	return signals
}

// Reserve reserves room in memory for the record, or returns false if there is none (I6).
func (b *Backlog) Reserve(rec *change.Record) bool {
	return b.queue.ReserveFor(rec)
}

// Overdraw reserves room beyond the limit. The caller bounds by other means what is queued.
func (b *Backlog) Overdraw(size int) { b.queue.Overdraw(size) }

// Cancel gives back reserved room for which nothing is pushed.
func (b *Backlog) Cancel(size int) {
	b.queue.Cancel(size)
	b.signals.Freed = true
}

// Push queues a record whose room is reserved, and assigns its Seq. It returns the records that are superseded by it.
func (b *Backlog) Push(rec *change.Record) (merged []*change.Record) {
	b.signals.Changed, b.signals.Ready = true, true
	return b.queue.Push(rec)
}

// Turn says where the next records are.
type Turn byte

const (
	// Wait says that there is nothing to take now.
	Wait Turn = iota
	// Memory says that the records have been returned.
	Memory
	// Disk says that they are to be read from the front of Extent, and passed to TakeRead.
	Disk
	// Over says that memory is empty for good: what is on disk is for the next process.
	Over
)

// Take returns in dst what the sink is to be given next, up to a batch. Everything that was taken before must be
// acknowledged. What is on disk comes before what is in memory (I3).
func (b *Backlog) Take(dst []*change.Record) (Turn, []*change.Record) {
	dst = dst[:0]
	switch behind := b.spool.behind(); {
	case b.finished && b.queue.Len() == 0:
		return Over, dst
	case behind && b.spool.readable():
		return Disk, dst
	case behind || b.queue.Len() == 0 || !b.spool.saved.Empty(): // after its mark, a log has records of disk or memory
		return Wait, dst
	}
	dst = b.queue.Pop(dst, b.batch)
	b.flight.take(dst, nil)
	b.signals.Changed, b.signals.Freed = true, true
	return Memory, dst
}

// Extent is what is on disk, as it is saved.
func (b *Backlog) Extent() Spool { return b.spool.saved }

// TakeRead notes what was read from disk, by the extents before and after, and which of those records the sink is being
// given.
func (b *Backlog) TakeRead(before, after *Spool, records []*change.Record) {
	b.flight.take(records, b.spool.reading(before, after))
	if len(records) > 0 {
		b.spool.oldest = records[0].Received
	}
	b.signals.Changed = true
}

// Ack notes that the sink has the records, which are some of the flight. It returns those for the ledger: records that
// are neither from disk nor have gone there. whole is false if some of the flight is on disk and not acknowledged yet:
// after a crash all that was in flight with it is given again.
func (b *Backlog) Ack(batch []*change.Record) (unspooled []*change.Record, whole bool) {
	saved, behind := b.flight.isSaved(), b.Behind()
	unspooled = b.unspooled(batch)
	b.flight.ack(batch)
	b.signals.Changed = true
	if len(b.flight.records) > 0 {
		return unspooled, !saved
	}
	if last := b.spool.delivered(&b.flight); last {
		b.trigger.active = false
	}
	b.flight.end()
	b.signals.Freed = b.signals.Freed || behind && !b.Behind() // for those who wait until nothing is on disk
	return unspooled, true
}

// unspooled are the records of the batch that are not on disk: all of them, as a rule.
func (b *Backlog) unspooled(batch []*change.Record) []*change.Record {
	if !slices.ContainsFunc(batch, b.flight.onDisk) {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), b.flight.onDisk)
}

// Behind says whether undelivered records are on disk, or on their way there.
func (b *Backlog) Behind() bool { return b.spool.behind() }

// IsBelow says whether fewer bytes than that are queued in memory, half of the queue is free, and nothing is on disk.
func (b *Backlog) IsBelow(bytes int) bool {
	return b.queue.Used().Bytes < bytes && b.IsHalfFree() && !b.Behind()
}

// IsHalfFree says whether half of the queue in memory is free.
func (b *Backlog) IsHalfFree() bool {
	used, limit := b.queue.used, b.queue.limit
	return 2*used.Bytes < limit.Bytes && 2*used.Records < limit.Records
}

// CanSpill says whether the backlog may go to disk.
func (b *Backlog) CanSpill() bool { return b.trigger.limit > 0 }

// StartSpill triggers that what is queued goes to disk. It returns CanSpill.
func (b *Backlog) StartSpill() bool {
	b.trigger.active, b.trigger.until = b.CanSpill(), b.queue.newest
	return b.trigger.active
}

// MaySpill says whether records are to go to disk now: a spill was triggered, and the spool is below its limit.
func (b *Backlog) MaySpill() bool { return b.trigger.active && b.spool.saved.Bytes() < b.trigger.limit }

// SpillAge is the age of the oldest record at which a backlog spills although its queue has room: the position must
// move on well before the API server forgets it, after five minutes by default.
const SpillAge = 30 * time.Second

// SpillOverdue triggers a spill if the oldest record has waited for too long.
func (b *Backlog) SpillOverdue(now time.Time) {
	if oldest := b.OldestUnsaved(); b.CanSpill() && !b.trigger.active && !oldest.IsZero() && now.Sub(oldest) > SpillAge {
		b.StartSpill()
	}
}

// Spill takes a record to disk, with the next save. It leaves the queue for a chunk of Main, or goes to Ahead while it
// is being written to the sink. A dead letter that is sent again is never on disk: if it is still queued, it leaves the
// backlog, and back is true.
func (b *Backlog) Spill(rec *change.Record) (back bool) {
	order, isQueued := b.queue.Remove(rec)
	switch {
	case isQueued && rec.Replay != nil:
		b.Cancel(rec.Size())
		return true
	case isQueued: // Saved frees its room
		b.spool.add(chunked{rec, Main, order})
	case rec.Replay != nil:
		b.flight.spill(rec)
	default:
		b.spool.add(chunked{rec, Ahead, b.flight.spill(rec)})
	}
	return false
}

// Chunks are the chunks of the records that Spill took since the last call. The caller must not Take between Spill and
// Chunks, which would overtake those records (I3).
func (b *Backlog) Chunks() []Chunk {
	if b.trigger.merges {
		// A record that took the place of a snapshot's record stays within the snapshot's frames.
		slices.SortStableFunc(b.spool.coming, func(a, b chunked) int { return cmp.Compare(a.order, b.order) })
	}
	b.endSpill()
	return b.spool.chunks(b.batch)
}

// endSpill ends the spill of a coalescing queue when everything is on disk that was queued at the trigger.
func (b *Backlog) endSpill() {
	if !b.trigger.merges || b.finished || b.flight.unsaved > 0 {
		return
	}
	if oldest := b.queue.Oldest(); oldest == nil || oldest.Seq > b.trigger.until {
		b.trigger.active = false
	}
}

// Saving is what the next save is to write: the extent, and those of the chunks that are not delivered by now. changed
// is false if the extent is saved already.
func (b *Backlog) Saving(chunks []Chunk) (extent Spool, kept []Chunk, changed bool) {
	extent = b.spool.left()
	for _, chunk := range chunks {
		e := &extent[chunk.Part]
		if chunk.Number < e.First {
			continue
		}
		kept = append(kept, chunk)
		e.Next = chunk.Number + 1
		e.Bytes += int64(len(chunk.Value))
		e.Records += int64(len(chunk.Records))
	}
	return extent, kept, extent != b.spool.saved
}

// Saved notes what was saved. It frees the room of the chunks' records.
func (b *Backlog) Saved(extent Spool, chunks []Chunk) {
	b.spool.save(extent)
	for _, chunk := range chunks {
		if chunk.Part == Ahead {
			continue
		}
		for _, rec := range chunk.Records {
			b.queue.Cancel(rec.Size())
		}
	}
	b.signals = Signals{Freed: true, Ready: true, Changed: true}
}

// Resume takes over what an earlier life has left on disk; oldest is when the oldest record of it was received.
func (b *Backlog) Resume(saved Spool, oldest time.Time) {
	b.spool.resume(saved, oldest)
	b.trigger.active = b.CanSpill() && b.spool.behind() && !b.trigger.merges
	b.signals.Changed = true
}

// Finish notes that nothing more will be pushed.
func (b *Backlog) Finish() { b.finished, b.signals.Ready = true, true }

// IsFinished says whether nothing more will be pushed.
func (b *Backlog) IsFinished() bool { return b.finished }

// Rests says whether nothing more will be pushed, and all that is left is on disk for the next process.
func (b *Backlog) Rests() bool {
	return b.finished && b.spool.behind() && b.Unsaved() == 0 && b.spool.whole()
}

// Dismiss empties queue and flight, and returns what was there. What is on disk stays: what of it was in flight is read
// again, as in a new process.
func (b *Backlog) Dismiss() []*change.Record {
	everything := slices.Concat(b.flight.records, b.queue.Pop(nil, b.queue.Used()))
	b.flight.end()
	b.trigger.active = false
	b.signals.Changed, b.signals.Freed = true, true
	return everything
}

// Unsaved is the number of records that are neither delivered nor on disk.
func (b *Backlog) Unsaved() int { return b.queue.Len() + b.flight.unsaved }

// OldestUnsaved is when the oldest record was received that is neither delivered nor on disk, zero if there is none. In
// a queue that does not coalesce, records on disk count, too: it follows them to disk without a new trigger.
func (b *Backlog) OldestUnsaved() time.Time {
	if b.trigger.merges && b.flight.unsaved == 0 {
		return b.oldestQueued()
	}
	return b.oldest()
}

// oldest is when the oldest record was received that the sink does not have, zero if there is none.
func (b *Backlog) oldest() time.Time {
	switch {
	case len(b.flight.records) > 0:
		return b.flight.records[0].Received
	case b.spool.behind():
		return b.spool.oldest
	}
	return b.oldestQueued()
}

func (b *Backlog) oldestQueued() time.Time {
	if rec := b.queue.Oldest(); rec != nil {
		return rec.Received
	}
	return time.Time{}
}

// Levels say how much is in the backlog.
func (b *Backlog) Levels() Levels {
	levels := Levels{
		Records: b.queue.Len(), Bytes: b.queue.Used().Bytes, Oldest: b.oldest(),
		SpoolRecords: b.spool.saved.Records() - b.spool.gone.records, SpoolBytes: b.spool.saved.Bytes() - b.spool.gone.bytes,
	}
	if b.flight.read == nil {
		levels.Records += len(b.flight.records)
	}
	return levels
}

// SpillNext spills what is not on disk yet in order, until it is as much as most, and returns it. Bookmarks and
// Resolved records are among taken, but are not written to disk. back are the dead letters that are sent again: they
// are to be given back. taken has those of them that were in flight.
func (b *Backlog) SpillNext(most Limit) (taken, back []*change.Record) {
	var size Limit
	spill := func(rec *change.Record) {
		if rec.Op == change.Bookmark || rec.Op == change.Resolved {
			if _, queued := b.queue.Remove(rec); queued {
				b.Cancel(rec.Size())
			} else {
				b.flight.spill(rec)
			}
			taken = append(taken, rec)
			return
		}
		switch gone := b.Spill(rec); {
		case gone:
			back = append(back, rec)
			return
		case rec.Replay != nil:
			back = append(back, rec)
		}
		size.Bytes += rec.Size()
		size.Records++
		taken = append(taken, rec)
	}
	for _, rec := range b.flight.records {
		if b.flight.read == nil && !b.flight.onDisk(rec) {
			spill(rec)
		}
	}
	for rec := b.queue.next(); rec != nil && size.Bytes < most.Bytes && size.Records < most.Records; rec = b.queue.next() {
		spill(rec)
	}
	return taken, back
}

// Last is the record that was queued last, if it has the last place; nil otherwise.
func (b *Backlog) Last() *change.Record { return b.queue.last() }

// trigger says when what is in memory goes to disk: when there is no room, or the oldest record is too old. A queue
// that does not coalesce spills until the disk is empty again.
//
// One that coalesces keeps records in memory, where they merge. A trigger sends to disk what is queued at that moment,
// and later records merge in memory again. The sink may have a record that has left for disk (I3): later records of its
// object do not supersede it, and the object's delete is sent. The position that is saved never passes a merged record
// before its successor is delivered or on disk.
type trigger struct {
	limit  int64  // bytes on disk; 0 is a backlog that never spills
	merges bool   // the queue coalesces
	active bool   // what is queued goes to disk
	until  uint64 // of a queue that coalesces: the Seq up to which records go to disk
}

// Levels say how much was pushed to a backlog and is not acknowledged.
type Levels struct {
	Records                  int   // in memory
	Bytes                    int   // of the queue alone
	SpoolRecords, SpoolBytes int64 // on disk; the bytes are those of the disk
	// when the oldest record was received, only about if it is on disk; zero if there is none
	Oldest time.Time
}
