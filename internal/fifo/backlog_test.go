package fifo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// world is everything around a backlog, slow and plain: a source that numbers its records and tells them again after a
// crash, a state that holds a position and chunks, and a sink whose log outlives every crash.
type world struct {
	t       *testing.T
	options Options
	b       *Backlog
	now     time.Time

	line   []*change.Record   // that are not part of the saved state, in their order
	acked  map[uint64]bool    // of line: the sink has it, or what has superseded it
	flight []*change.Record   // taken, and not acknowledged
	disk   map[string][]entry // by part and number of the chunk
	extent Spool              // as it is saved
	staged []stage            // batches that are not committed yet

	history []entry        // all that the source ever told
	log     []entry        // all that the sink was given, once each
	has     map[string]int // by name: the newest version in the log
	given   map[entry]bool // in this process
	at      int            // of history: what the saved position is behind

	merged, spilled, crashes int
}

// entry is one record as a log has it: the version of an object.
type entry struct {
	name    string
	version int
}

func (e entry) String() string { return fmt.Sprint(e.name, e.version) }

// stage is a batch on its way to the state.
type stage struct {
	chunks []Chunk
	at     int
}

func newWorld(t *testing.T, o Options) *world {
	return &world{
		t: t, options: o, b: NewBacklog(o), now: time.Unix(1000, 0), acked: map[uint64]bool{}, disk: map[string][]entry{},
		has: map[string]int{}, given: map[entry]bool{},
	}
}

func (w *world) entryOf(rec *change.Record) entry {
	var version int
	if _, err := fmt.Sscan(rec.ResourceVersion, &version); err != nil {
		w.t.Fatal(err)
	}
	return entry{rec.Key.Name, version}
}

func (w *world) recordOf(e entry) *change.Record {
	return &change.Record{
		Op: change.Updated, Stream: &streams[0], Key: change.Key{Name: e.name}, UID: e.name,
		ResourceVersion: fmt.Sprint(e.version), Received: w.now,
	}
}

// tell makes the source tell of something new.
func (w *world) tell(name string) {
	e := entry{name, len(w.history) + 1}
	if w.push(e) {
		w.history = append(w.history, e)
	}
}

// push puts the record in line, unless there is no room: then the backlog is to spill.
func (w *world) push(e entry) bool {
	rec := w.recordOf(e)
	if !w.b.Reserve(rec) {
		w.b.StartSpill()
		return false
	}
	w.line = append(w.line, rec)
	for _, old := range w.b.Push(rec) {
		w.acked[old.Seq] = true
		w.merged++
	}
	if used := w.b.queue.Used(); used.Records > w.options.Queue.Records || used.Bytes > w.options.Queue.Bytes {
		w.t.Fatalf("the queue holds %+v, and its limit is %+v (I6)", used, w.options.Queue)
	}
	return true
}

// take gives the sink what comes next. Of what it has, or has something newer of, it is given nothing.
func (w *world) take() {
	if len(w.flight) > 0 {
		return
	}
	next, batch := w.b.Take(nil)
	switch next {
	case Memory:
		if w.b.Behind() {
			w.t.Fatalf("records are taken from memory, and %+v is on disk before them (I3)", w.extent)
		}
	case Disk:
		before := w.b.Extent()
		if before != w.extent {
			w.t.Fatalf("the extent is %+v, the state has %+v", before, w.extent)
		}
		after := before
		batch = w.read(&after)
		w.b.TakeRead(&before, &after, batch)
	default:
		return
	}
	w.flight = slices.Clone(batch)
	for _, rec := range batch {
		e := w.entryOf(rec)
		if w.given[e] {
			w.t.Fatalf("%s is given to the sink twice", e)
		}
		if w.given[e] = true; e.version > w.has[e.name] {
			w.log, w.has[e.name] = append(w.log, e), e.version
		}
	}
}

// read reads from the front of the extent as the store does.
func (w *world) read(extent *Spool) (records []*change.Record) {
	for part := range extent {
		for e := &extent[part]; e.First < e.Next; {
			chunk := w.disk[fmt.Sprint(part, e.First)]
			if part == int(Main) && len(records) > 0 && len(records)+len(chunk) > w.options.Batch.Records {
				return records
			}
			for _, one := range chunk {
				records = append(records, w.recordOf(one))
			}
			e.First++
			e.Records -= int64(len(chunk))
			e.Bytes -= int64(len(chunk))
		}
	}
	return records
}

// ack acknowledges some of what was taken: one in the middle, or the first of them.
func (w *world) ack(first, n int) {
	first = min(first, max(0, len(w.flight)-1))
	batch := slices.Clone(w.flight[first:min(len(w.flight), first+n)])
	if len(w.flight) == 0 {
		return
	}
	unspooled, whole := w.b.Ack(batch)
	for _, rec := range unspooled {
		if rec.Seq == 0 || w.acked[rec.Seq] {
			w.t.Fatalf("record %d is acknowledged, and is on disk or was acknowledged before", rec.Seq)
		}
		w.acked[rec.Seq] = true
	}
	w.flight = slices.DeleteFunc(w.flight, func(rec *change.Record) bool { return slices.Contains(batch, rec) })
	if len(w.flight) == 0 && !whole {
		w.t.Fatal("everything is acknowledged, and no mark may pass it")
	}
}

// advance takes what may be saved: what is acknowledged, and where the backlog spills everything. The listener may want
// to take in the midst of it.
func (w *world) advance(takes bool) {
	spills, at := w.b.MaySpill(), w.at
	if len(w.staged) > 0 {
		at = w.staged[len(w.staged)-1].at
	}
	for len(w.line) > 0 && (spills || w.acked[w.line[0].Seq]) {
		rec := w.line[0]
		if !w.acked[rec.Seq] {
			w.b.Spill(rec)
			if w.spilled++; takes {
				w.take()
			}
		}
		delete(w.acked, rec.Seq)
		w.line, at = w.line[1:], at+1
	}
	w.staged = append(w.staged, stage{w.b.Chunks(), at})
}

// commit saves the oldest batch, and proves that it is right to.
func (w *world) commit() {
	if len(w.staged) == 0 {
		return
	}
	s := w.staged[0]
	w.staged = w.staged[1:]
	for i := range s.chunks {
		s.chunks[i].Value = make([]byte, len(s.chunks[i].Records))
	}
	extent, kept, changed := w.b.Saving(s.chunks)
	for _, chunk := range kept {
		key := fmt.Sprint(chunk.Part, chunk.Number)
		if len(w.disk[key]) > 0 {
			w.t.Fatalf("chunk %s is written twice", key)
		}
		for _, rec := range chunk.Records {
			w.disk[key] = append(w.disk[key], w.entryOf(rec))
		}
	}
	w.at = s.at
	if !changed && extent != w.extent {
		w.t.Fatalf("the extent changed to %+v", extent)
	}
	w.extent = extent
	if changed {
		w.b.Saved(extent, s.chunks)
	}
	w.durable()
}

// durable is I1: what the saved position is behind is in the log, on disk, or superseded by something that is, or that
// comes again after a crash.
func (w *world) durable() {
	safe := map[string]int{}
	for name, version := range w.has {
		safe[name] = version
	}
	extent := w.extent
	var records, bytes int64
	for part := range extent {
		for n := extent[part].First; n < extent[part].Next; n++ {
			for _, e := range w.disk[fmt.Sprint(part, n)] {
				safe[e.name] = max(safe[e.name], e.version)
				records++
				bytes++
			}
		}
	}
	if extent.Records() != records || extent.Bytes() != bytes {
		w.t.Fatalf("the extent is %+v, and %d records are on disk", extent, records)
	}
	for _, e := range w.history[w.at:] {
		safe[e.name] = max(safe[e.name], e.version)
	}
	for _, e := range w.history[:w.at] {
		if safe[e.name] < e.version {
			w.t.Fatalf("%s is saved as delivered, and is neither in the log nor on disk (I1)", e)
		}
	}
}

// crash ends the process and begins another one.
func (w *world) crash() {
	w.crashes++
	again := w.history[w.at:]
	w.b, w.line, w.flight, w.staged = NewBacklog(w.options), nil, nil, nil
	clear(w.acked)
	clear(w.given)
	w.b.Resume(w.extent, w.now)
	for _, e := range again {
		for !w.push(e) {
			w.work()
		}
	}
}

// work moves on what there is, by every step once.
func (w *world) work() {
	w.take()
	w.ack(0, len(w.flight))
	w.advance(false)
	for len(w.staged) > 0 {
		w.commit()
	}
}

func (w *world) step(b, arg byte) {
	w.now = w.now.Add(time.Second)
	switch b % 12 {
	case 0, 1, 2, 3:
		w.tell(string('a' + rune(arg%4)))
	case 4, 5:
		w.take()
	case 6:
		w.ack(0, int(arg%5))
	case 7:
		w.ack(int(arg%3), 1+int(arg%2))
	case 8:
		w.advance(arg&1 != 0)
	case 9:
		w.commit()
	case 10:
		w.disturb(arg)
	default:
		if arg < 32 {
			w.crash()
		}
	}
}

// disturb does what others do who wait.
func (w *world) disturb(arg byte) {
	switch arg % 3 {
	case 0:
		w.b.StartSpill()
	case 1:
		w.b.SpillOverdue(w.now)
	case 2:
		w.now = w.now.Add(SpillAge)
	}
}

// run takes the steps, and then delivers what is left.
func (w *world) run(script []byte) {
	for i := 0; i+1 < len(script); i += 2 {
		w.step(script[i], script[i+1])
	}
	for range 4 * (len(w.history) + 2) {
		w.work()
	}
	w.judge()
}

// judge compares the log with what was told.
func (w *world) judge() {
	w.t.Helper()
	if left := w.b.Levels(); left != (Levels{}) || w.b.Behind() || w.at != len(w.history) || w.b.queue.Used() != (Limit{}) {
		w.t.Fatalf("%+v is left, %+v of room is taken, and the position is %d of %d", left, w.b.queue.Used(), w.at, len(w.history))
	}
	if !w.options.Coalesce && !slices.Equal(w.log, w.history) {
		w.t.Fatalf("the log is\n%v\nand was told\n%v", w.log, w.history)
	}
	newest := map[string]int{}
	for _, e := range w.history {
		newest[e.name] = e.version
	}
	for name, version := range newest {
		if w.has[name] != version {
			w.t.Fatalf("the sink has version %d of %s, and %d is the last (I1)", w.has[name], name, version)
		}
	}
}

func optionsOf(seed uint64) Options {
	return Options{
		Queue: Limit{Bytes: 1 << 20, Records: 2 + int(seed>>1%5)}, Coalesce: seed%2 == 0,
		Batch: Limit{Bytes: 1 << 20, Records: 1 + int(seed>>3%5)}, Spool: int64(seed >> 5 % 3 * 20),
	}
}

// FuzzI3ABacklogLosesAndDoublesNothing through any order of its uses, and through crashes: what is in memory comes
// after what is on disk, a position passes nothing that is not durable, and the log is what was told.
func FuzzI3ABacklogLosesAndDoublesNothing(f *testing.F) {
	f.Add(uint64(0x41), []byte{0, 0, 4, 0, 0, 1, 0, 2, 0, 3, 10, 0, 8, 0, 9, 0, 11, 0})
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		newWorld(t, optionsOf(seed)).run(script)
	})
}

func TestI3ABacklogLosesAndDoublesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var merged, spilled, crashes int
	for seed := range uint64(6000) {
		script := make([]byte, 2*(1+rng.IntN(150)))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		w := newWorld(t, optionsOf(seed))
		w.run(script)
		merged, spilled, crashes = merged+w.merged, spilled+w.spilled, crashes+w.crashes
	}
	if merged < 1000 || spilled < 1000 || crashes < 1000 {
		t.Fatalf("%d records were merged, %d spilled, in %d crashes: the test shows nothing", merged, spilled, crashes)
	}
}

func spilling(coalesce bool) *Backlog {
	return NewBacklog(Options{
		Queue: Limit{Bytes: 1 << 20, Records: 10}, Coalesce: coalesce, Spool: 1 << 20, Batch: Limit{Bytes: 1 << 20, Records: 10},
	})
}

// put pushes a record of each name, and returns them.
func put(t *testing.T, b *Backlog, records ...*change.Record) []*change.Record {
	t.Helper()
	for _, rec := range records {
		if !b.Reserve(rec) {
			t.Fatal("there is no room")
		}
		b.Push(rec)
	}
	return records
}

func of(op change.Op, name, uid string) *change.Record {
	return &change.Record{Op: op, Stream: &streams[0], Key: change.Key{Name: name}, UID: uid}
}

// TestWhatIsDeliveredBeforeItIsSavedIsNotOnDisk: who reads what is on disk comes to its end.
func TestWhatIsDeliveredBeforeItIsSavedIsNotOnDisk(t *testing.T) {
	b := spilling(false)
	records := put(t, b, of(change.Updated, "a", "1"))
	b.Take(nil)
	b.StartSpill()
	b.Spill(records[0])
	b.Chunks()
	b.Ack(records)
	if b.Behind() {
		t.Error("something is on disk, want nothing")
	}
}

// save takes what there is to disk.
func save(b *Backlog, records ...*change.Record) {
	for _, rec := range records {
		b.Spill(rec)
	}
	chunks := b.Chunks()
	extent, kept, _ := b.Saving(chunks)
	b.Saved(extent, kept)
}

// TestASpillEnds when the disk is empty again, and where the queue coalesces when what triggered it is on disk.
func TestASpillEnds(t *testing.T) {
	keeps, merges := spilling(false), spilling(true)
	for _, b := range []*Backlog{keeps, merges} {
		first := put(t, b, of(change.Updated, "a", "1"), of(change.Updated, "b", "2"))
		b.StartSpill()
		put(t, b, of(change.Updated, "c", "3"))
		if save(b, first[0]); !b.trigger.active {
			t.Error("the spill ended, and a record for which it began is in memory")
		}
		save(b, first[1])
	}
	if merges.trigger.active || !keeps.trigger.active {
		t.Errorf("all is on disk for which it began: spills %t, and the queue that keeps everything %t", merges.trigger.active, keeps.trigger.active)
	}
	last := keeps.queue.Oldest()
	save(keeps, last)
	before, after := keeps.Extent(), keeps.Extent()
	after[Main] = Extent{First: after[Main].Next, Next: after[Main].Next}
	keeps.TakeRead(&before, &after, nil)
	if keeps.Ack(nil); keeps.trigger.active {
		t.Error("the disk is empty, and the spill goes on")
	}
}

// TestI1WhatIsLeftCountsEachRecordThatIsNotOnDisk: that the sink has some which are there says nothing of the others.
func TestI1WhatIsLeftCountsEachRecordThatIsNotOnDisk(t *testing.T) {
	b := spilling(false)
	records := put(t, b, of(change.Updated, "a", "1"), of(change.Updated, "b", "2"), of(change.Updated, "c", "3"))
	b.Take(nil)
	b.StartSpill()
	b.Spill(records[0])
	b.Spill(records[1])
	b.Chunks()
	b.Ack(records[:2])
	if got := b.Unsaved(); got != 1 {
		t.Errorf("%d records are neither delivered nor on disk, want the last one", got)
	}
}

// TestI3ADeadLetterHasNoFormOnDisk: it is given back where it waits, and keeps its turn where it is being written.
func TestI3ADeadLetterHasNoFormOnDisk(t *testing.T) {
	b := spilling(false)
	letter := func() *change.Record {
		rec := of(change.Updated, "a", "1")
		rec.Replay = &change.Replay{}
		return rec
	}
	written := put(t, b, letter())[0]
	b.Take(nil)
	waits := put(t, b, letter())[0]
	b.StartSpill()
	if b.Spill(written) || !b.Spill(waits) {
		t.Error("want the letter back that waits, and not the one that is being written")
	}
	if chunks := b.Chunks(); len(chunks) != 0 || b.Behind() {
		t.Errorf("%d chunks are on their way", len(chunks))
	}
	if unspooled, whole := b.Ack([]*change.Record{written}); len(unspooled) != 0 || !whole || b.Levels().Records != 0 {
		t.Errorf("%d records are not on disk, %d are left", len(unspooled), b.Levels().Records)
	}
}

// TestI7AStopLeavesWhatIsOnDisk, and nothing else.
func TestI7AStopLeavesWhatIsOnDisk(t *testing.T) {
	b := spilling(false)
	records := put(t, b, of(change.Updated, "a", "1"))
	b.Finish()
	b.StartSpill()
	b.Spill(records[0])
	chunks := b.Chunks()
	if b.Rests() {
		t.Error("the state does not have it yet")
	}
	extent, kept, _ := b.Saving(chunks)
	b.Saved(extent, kept)
	if next, _ := b.Take(nil); next != Over || !b.Rests() || b.Unsaved() != 0 {
		t.Errorf("next is %d", next)
	}
}

// TestI6DismissedRecordsTakeNoRoom: what is on disk stays.
func TestI6DismissedRecordsTakeNoRoom(t *testing.T) {
	b := spilling(false)
	records := put(t, b, of(change.Updated, "a", "1"), of(change.Updated, "b", "2"))
	b.StartSpill()
	b.Spill(records[0])
	extent, kept, _ := b.Saving(b.Chunks())
	b.Saved(extent, kept)
	if got := b.Dismiss(); len(got) != 1 || got[0] != records[1] {
		t.Errorf("%d records were dismissed", len(got))
	}
	if used := b.queue.Used(); used != (Limit{}) || !b.Behind() || b.trigger.active {
		t.Errorf("%+v of room is taken", used)
	}
}

// A snapshot goes before no live change where the queue is small: half of it is theirs.
func TestWhatCanWaitLeavesHalfOfTheQueue(t *testing.T) {
	for _, queue := range []Limit{{Bytes: 1 << 20, Records: 4}, {Bytes: 4 * record(100).Size(), Records: 100}} {
		b := NewBacklog(Options{Queue: queue, Batch: queue})
		for records, want := range []bool{true, true, false} {
			if got := b.IsBelow(1 << 30); got != want {
				t.Errorf("%+v: with %d records something else may wait: %v", queue, records, got)
			}
			b.Reserve(record(100))
		}
	}
}

// TestWhoWaitsForTheDiskIsToldThatItIsEmpty, and nobody of each batch that never was there.
func TestWhoWaitsForTheDiskIsToldThatItIsEmpty(t *testing.T) {
	b := NewBacklog(Options{Queue: Limit{Bytes: 1 << 20, Records: 8}, Spool: 1 << 20, Batch: Limit{Bytes: 1 << 20, Records: 8}})
	before := Spool{Main: {First: 1, Next: 2, Bytes: 10, Records: 1}}
	b.Resume(before, time.Unix(1, 0))
	if b.IsBelow(1) {
		t.Error("nothing waits for the sink, though some is on disk")
	}
	after := Spool{Main: {First: 2, Next: 2}}
	b.TakeRead(&before, &after, nil)
	b.Signals()
	b.Ack(nil)
	if !b.Signals().Freed || !b.IsBelow(1) {
		t.Error("nobody is told that the disk is empty")
	}
	if b.Ack(nil); b.Signals().Freed {
		t.Error("a batch from memory is told, too")
	}
}
