package pipeline

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/line"
)

// spool is the part of a listener's queue that is on disk. It comes before what is in memory: the listener takes from
// memory only when everything on disk is delivered (I3).
//
// Records go to disk in the batch that saves their positions, those that are being written to the sink as well:
// otherwise the position would stay at them for as long as the sink takes. Their copies are ahead of all others, so
// that after a crash the records which the sink may have are the first that are read. Everything is guarded by the
// listener's mu, and what concerns the tracker changes under the line's as well.
type spool struct {
	limit       int64        // bytes on disk; 0 is a listener that never spools
	active      bool         // what is queued goes to disk
	trigger     spillTrigger // of a queue that coalesces
	overcommits bool         // the queue may exceed its limit, since another listener keeps it from going to disk

	saved  fifo.Spool // as the state has it
	next   [2]uint64  // the number of the next chunk, by part
	coming bool       // records have left the queue for a chunk that has no number yet
	cursor [2]uint64  // all chunks before are delivered
	old    uint64     // all chunks of Main before are an earlier process'
	gone   size       // of what is delivered of Main and still saved

	flight *flight             // of the records that are taken; nil where they are from memory
	ahead  map[uint64]struct{} // Seqs of records that are taken from memory and are on disk, or on their way
	oldest time.Time           // when the oldest record on disk was received, about
}

func newSpool(s *Sink) spool {
	return spool{limit: s.Spool, trigger: spillTrigger{merges: s.Coalesce}, ahead: map[uint64]struct{}{}}
}

// load takes up what an earlier process has left.
func (s *spool) load(saved fifo.Spool) {
	s.saved = saved
	for part, extent := range saved {
		s.cursor[part], s.next[part] = extent.First, extent.Next
	}
	s.old = saved[fifo.Main].Next
	s.active = s.limit > 0 && s.behind() && !s.trigger.merges
}

// start begins to take what is queued to disk. It says whether there is a spool.
func (s *spool) start() bool {
	s.active = s.limit > 0
	s.trigger.until = s.trigger.newest
	return s.active
}

// behind says whether records are on disk, or on their way there, that are not delivered.
func (s *spool) behind() bool { return s.cursor != s.next || s.coming }

// readable says whether the next records are on disk, and no others before them are still saved: after a crash the
// records that the sink may have must be the first.
func (s *spool) readable() bool {
	for part, extent := range s.saved {
		if extent.First != s.cursor[part] {
			return false
		}
	}
	return !s.saved.Empty()
}

// takes says whether the committer may put records there.
func (s *spool) takes() bool { return s.active && s.saved.Bytes() < s.limit }

// delivered notes that everything taken is.
func (s *spool) delivered() {
	if s.flight != nil {
		s.cursor, s.gone, s.flight = s.flight.cursor, s.flight.size, nil
	}
	if len(s.ahead) > 0 {
		s.cursor[fifo.Ahead] = s.next[fifo.Ahead]
		clear(s.ahead)
	}
	if !s.behind() {
		s.active, s.oldest = false, time.Time{}
	}
}

// dismiss forgets what is being written: what of it is on disk is read again, as if by a new process.
func (s *spool) dismiss() {
	s.flight, s.active, s.overcommits = nil, false, false
	clear(s.ahead)
	s.old = s.next[fifo.Main]
}

// size is bytes on disk and records.
type size struct{ bytes, records int64 }

// isBehind says whether records on disk, or on their way there, are not delivered.
func (l *listener) isBehind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.behind()
}

// spill takes the record out of the queue, for disk, and says where in the queue it was. Where it is not queued it is
// being written to the sink.
func (l *listener) spill(rec *change.Record) (part fifo.Part, order uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.oldest.IsZero() {
		l.spool.oldest = rec.Received
	}
	l.spool.coming = true
	order = l.queue.Order(rec.Seq)
	if l.queue.Remove(rec.Seq) != nil {
		return fifo.Main, order // its room is free when it is saved
	}
	l.spool.ahead[rec.Seq] = struct{}{}
	if l.Coalesce {
		order = uint64(slices.Index(l.taken, rec))
	}
	return fifo.Ahead, order
}

// number gives so many chunks their numbers, by part, and returns the first ones. All that has left the queue is in
// chunks then.
func (l *listener) number(chunks [2]uint64) (first [2]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = l.spool.next
	for part, n := range chunks {
		l.spool.next[part] += n
	}
	l.spool.coming = false
	return first
}

// extent is what the state is to have of the spool, beside chunks that come: what is delivered is not in it.
func (l *listener) extent() fifo.Spool {
	l.mu.Lock()
	defer l.mu.Unlock()
	spool := l.spool.saved
	if at := l.spool.cursor[fifo.Ahead]; spool[fifo.Ahead].First != at { // it is delivered all at once
		spool[fifo.Ahead] = fifo.Extent{First: at, Next: at}
	}
	main := &spool[fifo.Main]
	main.First = l.spool.cursor[fifo.Main]
	main.Bytes -= l.spool.gone.bytes
	main.Records -= l.spool.gone.records
	return spool
}

// isSaved says whether the state has the extent.
func (l *listener) isSaved(extent fifo.Spool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.saved == extent
}

// spooled notes what the state has now. The chunks' records have left the queue.
func (l *listener) spooled(extent fifo.Spool, chunks []line.Chunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if extent[fifo.Main].First != l.spool.saved[fifo.Main].First {
		l.spool.gone = size{}
	}
	l.spool.saved = extent
	for _, chunk := range chunks {
		if chunk.Sink == l.Name && chunk.Part == fifo.Main {
			for _, rec := range chunk.Records {
				l.queue.Cancel(rec.Size())
			}
		}
	}
	l.signalFreed()
	l.signalReady()
	l.observe()
	l.leaveRest()
}

// stopGrace is how long a write may go on after a stop when all that it writes is on disk, too.
const stopGrace = time.Second

// leaveRest ends the run of a listener that is told to finish and whose records are all on disk: the next start
// continues there. The caller holds mu.
func (l *listener) leaveRest() {
	if !l.finished || !l.spool.behind() || l.unsaved() > 0 || l.cut == nil {
		return
	}
	for part, extent := range l.spool.saved {
		if extent.Next != l.spool.next[part] {
			return
		}
	}
	time.AfterFunc(stopGrace, l.cut)
	l.cut = nil
}

// unsaved is the number of records that are neither delivered nor spooled; the caller holds mu.
func (l *listener) unsaved() int {
	return l.queue.Len() + l.unsavedTaken()
}

// unsavedTaken is the number of those among them that are being written to the sink; the caller holds mu.
func (l *listener) unsavedTaken() int {
	if l.spool.flight != nil {
		return 0
	}
	return max(0, len(l.taken)-len(l.spool.ahead))
}

// overdue starts to spool where the sink has not taken its oldest record for too long; now is the time.
func (l *listener) overdue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.limit == 0 || l.spool.active || now.IsZero() {
		return false
	}
	oldest := l.oldestUnsaved()
	return !oldest.IsZero() && now.Sub(oldest) > line.SpillAfter && l.spool.start()
}

// oldest is when the oldest record was received that the sink does not have, zero where there is none; the caller holds
// mu.
func (l *listener) oldest() time.Time {
	if len(l.taken) > 0 {
		return l.taken[0].Received
	}
	if l.spool.behind() {
		return l.spool.oldest
	}
	if rec := l.queue.Oldest(); rec != nil {
		return rec.Received
	}
	return time.Time{}
}
