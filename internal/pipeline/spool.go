package pipeline

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// spool is the part of a listener's queue that is on disk. It comes before what is in memory: the listener takes from
// memory only when everything on disk is delivered (I3).
//
// Records go to disk in the batch that saves their positions, those that are being written to the sink as well: otherwise the
// position would stay at them for as long as the sink takes. Their copies are ahead of all others, so that after a crash the
// records which the sink may have are the first that are read. Everything is guarded by the listener's mu, and what concerns
// the tracker changes under the line's as well.
type spool struct {
	limit  int64 // bytes on disk; 0 is a listener that never spools
	active bool  // what is queued goes to disk
	press  press // of a queue that coalesces
	lent   bool  // the queue may exceed its limit, since another listener keeps what is in it from going to disk

	saved  checkpoint.Spool // as the state has it
	next   [2]uint64        // the number of the next chunk, by part
	cursor [2]uint64        // all chunks before are delivered
	old    uint64           // all chunks of Main before are an earlier process'
	gone   size             // of what is delivered of Main and still saved

	flight *flight             // of the records that are taken; nil where they are from memory
	ahead  map[uint64]struct{} // Seqs of records that are taken from memory and are on disk, or on their way
	oldest time.Time           // when the oldest record on disk was received, about
}

// spoolAfter is the age of the oldest record at which a sink that does not take it is spooled for, although its queue has
// room: the position must move on well before the API server's history ends, after five minutes by default.
const spoolAfter = 30 * time.Second

func newSpool(s *Sink) spool {
	return spool{limit: s.Spool, press: press{merges: s.Coalesce}, ahead: map[uint64]struct{}{}}
}

// load takes up what an earlier process has left.
func (s *spool) load(saved checkpoint.Spool) {
	s.saved = saved
	for part, extent := range saved {
		s.cursor[part], s.next[part] = extent.First, extent.Next
	}
	s.old = saved[checkpoint.Main].Next
	s.active = s.limit > 0 && s.behind() && !s.press.merges
}

// start begins to take what is queued to disk. It says whether there is a spool.
func (s *spool) start() bool {
	s.active = s.limit > 0
	s.press.until = s.press.newest
	return s.active
}

// behind says whether records are on disk, or on their way there, that are not delivered.
func (s *spool) behind() bool { return s.cursor != s.next }

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
		s.cursor[checkpoint.Ahead] = s.next[checkpoint.Ahead]
		clear(s.ahead)
	}
	if !s.behind() {
		s.active, s.oldest = false, time.Time{}
	}
}

// flight is what was read from disk and is being written to the sink.
type flight struct {
	cursor [2]uint64 // behind it
	size   size      // of Main
	old    bool      // some of it was saved by an earlier process
}

func isEmpty(e checkpoint.Extent) bool { return e.First == e.Next }

// size is bytes on disk and records.
type size struct{ bytes, records int64 }

// flightOf is what was read, by the extents before and after.
func flightOf(before, after *checkpoint.Spool) *flight {
	return &flight{
		cursor: [2]uint64{after[checkpoint.Ahead].First, after[checkpoint.Main].First},
		size: size{
			before[checkpoint.Main].Bytes - after[checkpoint.Main].Bytes,
			before[checkpoint.Main].Records - after[checkpoint.Main].Records,
		},
	}
}

// spooling says whether what the sink has not acknowledged may be saved as spooled.
func (l *listener) spooling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.takes()
}

// lendAfter is how long a queue that is to go to disk waits for others that keep the positions from moving.
const lendAfter = time.Second

// loosen sees to it that a queue which is to go to disk gets there, or at least holds up nobody, although sinks that are not spooled
// for have not taken what is before it. Those that can be spooled for are, then. Where others hold the position, their queues have
// room, and what all hold together is bounded by the line's window (I6); spooling are the listeners that spool now. The caller
// holds the line's mu.
func (l *Line) loosen(spooling uint64) {
	var holders, merging uint64
	if spooling != 0 {
		holders, merging = l.holders(lendAfter)&^spooling, l.merging()&^l.holders(mergeFor)
	}
	for i, lst := range l.listeners {
		if (holders&^merging)&(1<<i) != 0 && lst.spoolsNow() {
			holders &^= 1 << i
			l.wakeCommitter()
		}
	}
	for _, lst := range l.listeners {
		lst.lend(holders != 0)
	}
}

// spoolsNow starts to spool, where the listener can; false is that it cannot.
func (l *listener) spoolsNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.start()
	return l.spool.takes()
}

// lend lets the queue exceed its limit, or no longer.
func (l *listener) lend(stuck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.lent = stuck && l.spool.takes(); l.spool.lent {
		l.signalFreed()
	}
}

// isBehind says whether records on disk, or on their way there, are not delivered.
func (l *listener) isBehind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.behind()
}

// spill takes the record out of the queue, for disk, and says where in the queue it was. Where it is not queued it is being
// written to the sink.
func (l *listener) spill(rec *change.Record) (part checkpoint.SpoolPart, order uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spool.oldest.IsZero() {
		l.spool.oldest = rec.Received
	}
	order = l.queue.Order(rec.Seq)
	if l.queue.Remove(rec.Seq) != nil {
		return checkpoint.Main, order // its room is free when it is saved
	}
	l.spool.ahead[rec.Seq] = struct{}{}
	if l.Coalesce {
		order = uint64(slices.Index(l.taken, rec))
	}
	return checkpoint.Ahead, order
}

// number gives the next chunk its number.
func (l *listener) number(part checkpoint.SpoolPart) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.next[part]++
	return l.spool.next[part] - 1
}

// extent is what the state is to have of the spool, beside chunks that come: what is delivered is not in it.
func (l *listener) extent() checkpoint.Spool {
	l.mu.Lock()
	defer l.mu.Unlock()
	spool := l.spool.saved
	if at := l.spool.cursor[checkpoint.Ahead]; spool[checkpoint.Ahead].First != at { // it is delivered all at once
		spool[checkpoint.Ahead] = checkpoint.Extent{First: at, Next: at}
	}
	main := &spool[checkpoint.Main]
	main.First = l.spool.cursor[checkpoint.Main]
	main.Bytes -= l.spool.gone.bytes
	main.Records -= l.spool.gone.records
	return spool
}

// isSaved says whether the state has the extent.
func (l *listener) isSaved(extent checkpoint.Spool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.saved == extent
}

// spooled notes what the state has now. The chunks' records have left the queue.
func (l *listener) spooled(extent checkpoint.Spool, chunks []spoolChunk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if extent[checkpoint.Main].First != l.spool.saved[checkpoint.Main].First {
		l.spool.gone = size{}
	}
	l.spool.saved = extent
	for _, chunk := range chunks {
		if chunk.listener == l.index && chunk.part == checkpoint.Main {
			for _, rec := range chunk.records {
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

// leaveRest ends the run of a listener that is told to finish and whose records are all on disk: the next start continues
// there. The caller holds mu.
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
	return !oldest.IsZero() && now.Sub(oldest) > spoolAfter && l.spool.start()
}

// oldest is when the oldest record was received that the sink does not have, zero where there is none; the caller holds mu.
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

// readSpool takes the oldest records from disk. Those of streams that the sink does not take any more are left out: what is
// not configured must not leave (I9).
func (l *listener) readSpool() ([]*change.Record, error) {
	l.mu.Lock()
	before := l.spool.saved
	l.mu.Unlock()
	left := before
	most := batchLimit()
	records, err := l.store.ReadSpool(l.Name, &left, most.Bytes, most.Records)
	if err != nil {
		return nil, err
	}
	if records, err = l.stillTaken(records); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.flight = flightOf(&before, &left)
	l.spool.flight.old = !isEmpty(before[checkpoint.Ahead]) || before[checkpoint.Main].First < l.spool.old
	l.taken = append(l.taken[:0], records...)
	if len(records) > 0 {
		l.spool.oldest = records[0].Received
	}
	l.observe()
	return records, nil
}

// stillTaken are the records of streams that the sink takes.
func (l *listener) stillTaken(records []*change.Record) ([]*change.Record, error) {
	taken := records[:0]
	for _, rec := range records {
		stream, err := l.streamOnDisk(rec.Stream.String())
		if err != nil {
			return nil, err
		}
		if stream != nil && l.takes(stream) {
			rec.Stream = stream
			taken = append(taken, rec)
		}
	}
	clear(records[len(taken):])
	return taken, nil
}

// streamOnDisk is the stream of the name, nil where it is not configured any more. One that is over since has left its
// resource: the sink is still to be told how it ended.
func (l *listener) streamOnDisk(name string) (*change.Stream, error) {
	if stream := l.delivered.streamNamed(name); stream != nil {
		return stream, nil
	}
	_, positioned, err := l.store.Position(name)
	if err != nil || positioned {
		return nil, err
	}
	stream, found, err := l.store.Resource(name)
	if err != nil || !found {
		return nil, err
	}
	return &stream, nil
}

// takeSpooled reads the oldest records from disk, those that the sink still takes.
func (l *listener) takeSpooled() ([]*change.Record, error) {
	records, err := l.readSpool()
	if err != nil || len(records) > 0 {
		return records, err
	}
	return nil, l.acknowledged(nil, "")
}

// loadSpool takes up what an earlier process has left, before the sink is opened. What that process may have written without
// noting it is the first batch.
func (l *listener) loadSpool() error {
	saved, err := l.store.Spool(l.Name)
	if err != nil {
		return err
	}
	first, most := saved, batchLimit()
	records, err := l.store.ReadSpool(l.Name, &first, most.Bytes, most.Records)
	if err != nil {
		return err
	}
	if l.spooledFirst, err = l.stillTaken(records); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spool.load(saved)
	if len(l.spooledFirst) > 0 {
		l.spool.oldest = l.spooledFirst[0].Received
	}
	l.observe()
	return nil
}

// isOld says whether what is taken was saved by an earlier process.
func (l *listener) isOld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spool.flight != nil && l.spool.flight.old
}
