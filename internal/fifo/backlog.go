package fifo

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OldestOf is by the name of the stream when its oldest record was received that is neither delivered nor on disk.
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
// memory, a spool on disk before it, and before both what the sink is being given.
//
//	Reserve -> Push -> Take -> Ack
//	             |      ^
//	             v      |
//	           Spill -> Saving -> Saved -> TakeRead
//
// It reads and writes nothing: it says what the disk is to hold, and is told what the disk holds. After each use
// Signals says whom that concerns.
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
	Coalesce bool  // what is in memory
	Spool    int64 // bytes on disk; 0 is a backlog that never goes there
	Batch    Limit // of what is taken at once, and of a chunk on disk
}

// Signals are whom a use of the backlog concerns.
type Signals struct {
	Freed   bool // whoever waits for room
	Ready   bool // whoever takes
	Changed bool // whoever is told the Levels
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

// Signals are whom the uses since the last call concern.
func (b *Backlog) Signals() Signals {
	signals := b.signals
	b.signals = Signals{}
	return signals
}

// Reserve takes room in memory for the record, or returns false when there is none (I6).
func (b *Backlog) Reserve(rec *change.Record) bool {
	return b.queue.ReserveFor(rec)
}

// Overdraw takes room that there is not. The caller bounds by other means what is held.
func (b *Backlog) Overdraw(size int) { b.queue.Overdraw(size) }

// Cancel gives room back for which nothing is pushed.
func (b *Backlog) Cancel(size int) {
	b.queue.Cancel(size)
	b.signals.Freed = true
}

// Push queues a record whose room is reserved, and that an earlier process may have delivered. It gives it its Seq, and
// returns those that it has made superfluous.
func (b *Backlog) Push(rec *change.Record) (merged []*change.Record) {
	b.signals.Changed, b.signals.Ready = true, true
	return b.queue.Push(rec)
}

// Turn is where the records are that come next.
type Turn byte

const (
	// Wait is that there is nothing to take at this moment.
	Wait Turn = iota
	// Memory is that the records are here.
	Memory
	// Disk is that they are to be read at the front of Extent, and to be told to TakeRead.
	Disk
	// Over is that nothing more will be in memory: what is on disk is for the next process.
	Over
)

// Take returns in dst what the sink is to be given next, up to a batch. All that was taken before is acknowledged. What
// is on disk comes before what is in memory (I3).
func (b *Backlog) Take(dst []*change.Record) (Turn, []*change.Record) {
	dst = dst[:0]
	switch behind := b.spool.behind(); {
	case b.finished && b.queue.Len() == 0:
		return Over, dst
	case behind && b.spool.readable():
		return Disk, dst
	case behind || b.queue.Len() == 0 || !b.spool.saved.Empty(): // after a crash what the sink may have is either on disk or not
		return Wait, dst
	}
	dst = b.queue.Pop(dst, b.batch)
	b.flight.take(dst, nil)
	b.signals.Changed, b.signals.Freed = true, true
	return Memory, dst
}

// Extent is what the disk holds, as the state has it.
func (b *Backlog) Extent() Spool { return b.spool.saved }

// TakeRead notes what was read from disk, by the extents before and after, and which records of that the sink is being
// given.
func (b *Backlog) TakeRead(before, after *Spool, records []*change.Record) {
	b.flight.take(records, b.spool.reading(before, after))
	if len(records) > 0 {
		b.spool.oldest = records[0].Received
	}
	b.signals.Changed = true
}

// Ack notes that the sink has the records, some of those that were taken. It returns those that a tracker waits for:
// what was read from disk, or has gone there, is not tracked. Whole is false where some of what was taken is on disk
// and not acknowledged: after a crash it is given again with what was taken beside it.
func (b *Backlog) Ack(batch []*change.Record) (tracked []*change.Record, whole bool) {
	saved, behind := b.flight.isSaved(), b.Behind()
	tracked = b.tracked(batch)
	b.flight.ack(batch)
	b.signals.Changed = true
	if len(b.flight.records) > 0 {
		return tracked, !saved
	}
	if last := b.spool.delivered(&b.flight); last {
		b.trigger.active = false
	}
	b.flight.end()
	b.signals.Freed = b.signals.Freed || behind && !b.Behind() // whoever waits for the disk to be empty
	return tracked, true
}

// tracked are the records of the batch that are in memory alone. As a rule all are.
func (b *Backlog) tracked(batch []*change.Record) []*change.Record {
	if !slices.ContainsFunc(batch, b.flight.onDisk) {
		return batch
	}
	return slices.DeleteFunc(slices.Clone(batch), b.flight.onDisk)
}

// Behind says whether records on disk, or on their way there, are not delivered.
func (b *Backlog) Behind() bool { return b.spool.behind() }

// IsBelow says whether fewer bytes are queued in memory, which leave half of the queue free, and none on disk.
func (b *Backlog) IsBelow(bytes int) bool {
	return b.queue.Used().Bytes < bytes && b.IsHalfFree() && !b.Behind()
}

// IsHalfFree says whether half of the queue in memory is free.
func (b *Backlog) IsHalfFree() bool {
	used, limit := b.queue.used, b.queue.limit
	return 2*used.Bytes < limit.Bytes && 2*used.Records < limit.Records
}

// CanSpill says whether there is a disk.
func (b *Backlog) CanSpill() bool { return b.trigger.limit > 0 }

// StartSpill begins to take what is queued to disk. It says whether there is a disk.
func (b *Backlog) StartSpill() bool {
	b.trigger.active, b.trigger.until = b.CanSpill(), b.queue.newest
	return b.trigger.active
}

// MaySpill says whether it may go now: there is room on disk.
func (b *Backlog) MaySpill() bool { return b.trigger.active && b.spool.saved.Bytes() < b.trigger.limit }

// SpillAge is the age of the oldest record at which a backlog goes to disk although its queue has room: the position
// must move on well before the API server's history ends, after five minutes by default.
const SpillAge = 30 * time.Second

// SpillOverdue begins to spill where the sink has not taken its oldest record for too long.
func (b *Backlog) SpillOverdue(now time.Time) {
	if oldest := b.OldestUnsaved(); b.CanSpill() && !b.trigger.active && !oldest.IsZero() && now.Sub(oldest) > SpillAge {
		b.StartSpill()
	}
}

// Spill is told of a record that is saved in the next batch although the sink does not have it. It leaves the queue for
// a chunk, or goes to disk ahead of the others while it is being written to the sink. A dead letter that is sent again
// has no form on disk: where it is still queued it leaves the backlog, and back is true.
func (b *Backlog) Spill(rec *change.Record) (back bool) {
	order, isQueued := b.queue.Remove(rec)
	switch {
	case isQueued && rec.Replay != nil:
		b.Cancel(rec.Size())
		return true
	case isQueued: // its room is free when it is saved
		b.spool.add(chunked{rec, Main, order})
	case rec.Replay != nil:
		b.flight.spill(rec)
	default:
		b.spool.add(chunked{rec, Ahead, b.flight.spill(rec)})
	}
	return false
}

// Chunks are what the records since the last call that spill are on disk. Between a record's leaving the queue and this
// call nothing is taken from memory: the record after it is not the next one (I3).
func (b *Backlog) Chunks() []Chunk {
	if b.trigger.merges {
		// What has taken the place of a snapshot's record stays within the snapshot's frames.
		slices.SortStableFunc(b.spool.coming, func(a, b chunked) int { return cmp.Compare(a.order, b.order) })
	}
	b.endSpill()
	return b.spool.chunks(b.batch)
}

// endSpill ends the spilling of a queue that coalesces, when what triggered it is on disk.
func (b *Backlog) endSpill() {
	if !b.trigger.merges || b.finished || b.flight.unsaved > 0 {
		return
	}
	if oldest := b.queue.Oldest(); oldest == nil || oldest.Seq > b.trigger.until {
		b.trigger.active = false
	}
}

// Saving is what the state is to have in its next batch: the extent, and of the chunks those that are not delivered by
// now. Changed is false where it has that.
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

// Saved notes what the state has now. The room of the chunks' records is free.
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

// Resume takes up what an earlier process has left on disk, of which the oldest record was received then.
func (b *Backlog) Resume(saved Spool, oldest time.Time) {
	b.spool.resume(saved, oldest)
	b.trigger.active = b.CanSpill() && b.spool.behind() && !b.trigger.merges
	b.signals.Changed = true
}

// Finish notes that nothing more will be pushed.
func (b *Backlog) Finish() { b.finished, b.signals.Ready = true, true }

// IsFinished says whether nothing more will be pushed.
func (b *Backlog) IsFinished() bool { return b.finished }

// Rests says whether nothing more will be pushed and all that is left is on disk, for the next process.
func (b *Backlog) Rests() bool {
	return b.finished && b.spool.behind() && b.Unsaved() == 0 && b.spool.whole()
}

// Dismiss empties the memory, and returns what was there. What is on disk stays; what of it was being given to the sink
// is read again, as if by a new process.
func (b *Backlog) Dismiss() []*change.Record {
	everything := slices.Concat(b.flight.records, b.queue.Pop(nil, b.queue.Used()))
	b.flight.end()
	b.trigger.active = false
	b.signals.Changed, b.signals.Freed = true, true
	return everything
}

// Unsaved is the number of records that are neither delivered nor on disk.
func (b *Backlog) Unsaved() int { return b.queue.Len() + b.flight.unsaved }

// OldestUnsaved is when the oldest record was received that is neither delivered nor on disk, zero where there is none.
// What is on disk counts, too, where memory goes there without a trigger.
func (b *Backlog) OldestUnsaved() time.Time {
	if b.trigger.merges && b.flight.unsaved == 0 {
		return b.oldestQueued()
	}
	return b.oldest()
}

// oldest is when the oldest record was received that the sink does not have, zero where there is none.
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

// Levels are how much there is.
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

// SpillNext takes what the sink does not have out for disk, the oldest first, until it is as much as most, and returns
// it in order: bookmarks and what is resolved, too, which have no place on disk. Dead letters that are sent again go
// back where they came from, and are not among them where they were still queued.
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

// Last is the record that was queued last, where it waits in its own place; nil where there is none.
func (b *Backlog) Last() *change.Record { return b.queue.last() }

// trigger is when what is in memory goes to disk: when there is no room, or the oldest record is too old. A queue that
// keeps everything goes there until the disk is empty again.
//
// One that coalesces keeps in memory what waits, where it merges. On a trigger what is in it then goes to disk, in the
// batches that save its positions, and what comes later merges in memory again, after it. A record that has left for
// disk is one that the sink may have (I3): what comes later of its object supersedes nothing, and a delete of it is
// told. What was merged away before is acknowledged, and its successor is on disk, or in line with its position not
// saved.
type trigger struct {
	limit  int64  // bytes on disk; 0 is a backlog that never goes there
	merges bool   // the queue coalesces
	active bool   // what is queued goes to disk
	until  uint64 // of a queue that coalesces: what was pushed up to it goes to disk
}

// Levels are how much was pushed to a backlog and is not acknowledged.
type Levels struct {
	Records                  int   // in memory
	Bytes                    int   // of the queue alone
	SpoolRecords, SpoolBytes int64 // on disk; the bytes are those of the disk
	// when the oldest record was received, about where it is on disk; zero where there is none
	Oldest time.Time
}
