package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Line is where sources put their records: it numbers them, hands each to the listeners that want it, and knows which
// of them are delivered. All streams and all listeners share it.
type Line struct {
	listeners []*listener
	images    *Images // nil where no objects are kept

	saving  sync.Mutex  // held while marks are saved, and no longer than one attempt takes; guards the following
	durable []sink.Mark // by listener: the mark that is saved

	mu      sync.Mutex // guards the following
	number  fifo.Numberer
	streams map[string]*progress
	name    []byte             // of a stream, while it is looked for
	recent  *change.Stream     // the one that was looked for last
	found   *progress          // what came of it; nil is none
	marks   []checkpoint.Marks // by listener
	held    []heldMark         // by listener
	saved   []sink.Mark        // by listener: the mark that was given to the committer last
	based   []bool             // by listener: its log is compared with positions of its own until a mark is saved
	skipped []uint64           // by listener: the highest Seq that may be in the log before the marks, or clears what is there
	leaving []*change.Record   // given to the committer, and not part of the saved state yet
	window  *fifo.Queue        // room for what is not saved yet; it only counts
	wake    chan struct{}      // buffered 1: the committer has work
	moved   chan struct{}      // buffered 1: a bookmark came, and the committer has work that can wait
	changed chan struct{}      // closed and made anew when something was saved
}

// heldMark is the newest mark of a sink whose log still holds what comes again: it counts when that has passed.
type heldMark struct {
	seq  uint64
	mark sink.Mark // "" is none
}

// progress is what is known of one stream's records.
type progress struct {
	tracker   *checkpoint.Tracker
	added     uint64 // records put in
	committed uint64 // records that are part of the saved state
}

func newLine(listeners []*listener) *Line {
	l := &Line{
		listeners: listeners,
		streams:   map[string]*progress{},
		marks:     make([]checkpoint.Marks, len(listeners)),
		held:      make([]heldMark, len(listeners)),
		saved:     make([]sink.Mark, len(listeners)),
		durable:   make([]sink.Mark, len(listeners)),
		skipped:   make([]uint64, len(listeners)),
		based:     make([]bool, len(listeners)),
		window:    fifo.NewQueue(windowLimit(listeners)),
		wake:      make(chan struct{}, 1),
		moved:     make(chan struct{}, 1),
		changed:   make(chan struct{}),
	}
	return l
}

// windowLimit bounds the records that are not saved yet, delivered or not: without it a state that cannot be saved would
// let them grow while the sinks are well (I6). It leaves every queue its whole room, so that a sink that is stuck holds up
// those streams alone that it takes.
func windowLimit(listeners []*listener) fifo.Limit {
	limit := fifo.Limit{Bytes: 16 << 20, Records: 1 << 14}
	for _, lst := range listeners {
		limit.Bytes += lst.Queue.Bytes + batchLimit().Bytes
		limit.Records += lst.Queue.Records + batchLimit().Records
	}
	return limit
}

// Push puts the record in line and gives it its Seq. It blocks while a queue that wants the record is full, or too much is
// not saved yet, and returns ctx's error if ctx ends first; the record is then in no queue. Records of one stream must be
// pushed by one goroutine at a time, in their order (I3).
func (l *Line) Push(ctx context.Context, rec *change.Record) error {
	// Once a record was refused, none of its stream may follow: room may have come since, and the position would pass over
	// the one that is missing (I2).
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wanted := l.wanted(rec)
	if err := l.enter(ctx, rec); err != nil {
		return err
	}
	if err := l.reserve(ctx, rec, wanted); err != nil {
		l.leave(rec.Size())
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number.Number(rec)
	l.images.note(rec)
	p := l.of(rec)
	if p == nil {
		p = l.progress(rec.Stream.String())
	}
	if err := p.tracker.Add(rec, wanted); err != nil {
		return fmt.Errorf("track record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	p.added++
	wake, err := l.hand(rec, wanted)
	if err != nil {
		return err
	}
	switch {
	case wake:
		l.wakeCommitter()
	case rec.Op == change.Bookmark:
		signal(l.moved)
	}
	return nil
}

// hand queues the record for the listeners that want it, and says whether the committer has work. The caller holds mu.
func (l *Line) hand(rec *change.Record, wanted uint64) (wake bool, err error) {
	wake = wanted == 0 && rec.Op != change.Bookmark
	for i, lst := range l.listeners {
		if wanted&(1<<i) != 0 || rec.Op == change.SnapshotEnd { // whoever that is for, the reconcile has told of all ghosts
			lst.delivered.enters(rec, lst.clusterUID)
		}
		if wanted&(1<<i) != 0 {
			if rec.Op == change.Deleted {
				lst.stranded.told(rec)
			}
			merged, spools := lst.push(rec)
			if err := l.forgo(i, merged); err != nil {
				return false, err
			}
			wake = wake || spools || len(merged) > 0
		}
		wake = lst.overdue(rec.Received) || wake
	}
	return wake, nil
}

// forgo acknowledges records that a newer one of the same object has made superfluous for the listener, and which its sink
// will never be given. That is early, and right: the newer one is in line and not acknowledged, so that the position stays
// before it, and a crash brings it again. The caller holds mu.
func (l *Line) forgo(listener int, merged []*change.Record) error {
	for _, rec := range merged {
		if err := l.of(rec).tracker.Ack(listener, rec.Seq); err != nil {
			return fmt.Errorf("leave out record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
	}
	if len(merged) > 0 {
		lst := l.listeners[listener]
		for _, rec := range merged {
			lst.delivered.leaves(rec)
		}
		lst.observer.Coalesced(lst.Name, len(merged))
	}
	return nil
}

// aheadOfSinks is how many bytes that are not saved yet a snapshot leaves to the line: its list can be read again, and what
// it has read further only takes memory, however large the queues are.
const aheadOfSinks = 4 << 20

// enter takes room in the window of what is not saved yet.
func (l *Line) enter(ctx context.Context, rec *change.Record) error {
	return l.await(ctx, func() bool {
		if rec.Snapshot != nil && l.window.Used().Bytes > aheadOfSinks {
			return false
		}
		return l.window.Reserve(rec.Size())
	})
}

// await returns when reached says so, which is asked under mu now and whenever something was saved, or with ctx's error. Meanwhile
// it sees to it that nobody is waited for who can be spooled for.
func (l *Line) await(ctx context.Context, reached func() bool) error {
	var patience *time.Ticker
	l.mu.Lock()
	for !reached() {
		changed := l.changed
		l.mu.Unlock()
		if patience == nil {
			patience = time.NewTicker(lendAfter)
			defer patience.Stop()
		}
		select {
		case <-changed:
		case <-patience.C:
			l.relieve()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	return nil
}

// leave gives room in the window back.
func (l *Line) leave(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.window.Cancel(size)
	l.signalChanged()
}

// signalChanged wakes all who wait for something to be saved; the caller holds mu.
func (l *Line) signalChanged() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// wanted is the set of listeners that must write the record, as a bit mask. What a user does not want, and a
// bookmark, move the position and are nobody's.
func (l *Line) wanted(rec *change.Record) uint64 {
	var mask uint64
	if rec.Op == change.Bookmark || rec.Filtered {
		return mask
	}
	for i, lst := range l.listeners {
		if lst.wants(rec) {
			mask |= 1 << i
		}
	}
	return mask
}

// reserve takes room in every wanted queue, one after the other. A stream that waits for one queue holds up no other
// stream.
func (l *Line) reserve(ctx context.Context, rec *change.Record, wanted uint64) error {
	for i, lst := range l.listeners {
		if wanted&(1<<i) == 0 {
			continue
		}
		if err := lst.reserve(ctx, rec); err != nil {
			for j := range i {
				if wanted&(1<<j) != 0 {
					l.listeners[j].cancel(rec.Size())
				}
			}
			return err
		}
	}
	return nil
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

// of returns the progress of the record's stream, nil of one that has none yet. It is asked several times a record, so it
// makes no string of the name, and nearly always the stream is that of the record before. The caller holds mu.
func (l *Line) of(rec *change.Record) *progress {
	if rec.Stream != l.recent || l.found == nil {
		l.name = rec.Stream.AppendString(l.name[:0])
		l.recent, l.found = rec.Stream, l.streams[string(l.name)]
	}
	return l.found
}

// wakeCommitter tells the committer that trackers moved, or should.
func (l *Line) wakeCommitter() { signal(l.wake) }

// signal makes whoever receives of the channel, which is buffered 1, look once more.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ack records that the listener's sink holds the records durably (I1), and, with a mark, that its log stands there after
// the last of them.
func (l *Line) ack(listener int, batch []*change.Record, mark sink.Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lst, seq := l.listeners[listener], uint64(0)
	for _, rec := range batch {
		if lst.onDisk(rec) {
			continue
		}
		if err := l.of(rec).tracker.Ack(listener, rec.Seq); err != nil {
			return fmt.Errorf("acknowledge record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
		seq = max(seq, rec.Seq)
	}
	// What is on disk is given again after a crash, until all that was taken with it is delivered: no mark may pass it.
	// And what was written before lies before it, whatever its number: a batch from disk has none, and a queue that coalesces does
	// not rise.
	spools, held := lst.spools(), &l.held[listener]
	held.seq = max(held.seq, seq)
	if all := lst.settle(queued(batch)); mark != "" && (all || !spools) {
		held.mark = mark
	}
	l.wakeCommitter()
	return nil
}

// compare notes that the listener is about to compare records up to seq with what its sink's log held before. Those that
// it holds lie before every mark that comes, also where a record with a lower Seq is written after them; and what the log
// tells of is forgotten on behalf of records that are not delivered yet. So no such mark counts before they are saved.
func (l *Line) compare(listener int, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped[listener] = max(seq, l.skipped[listener])
}

// release lets the listener's mark count, unless what is still to be replayed lies before it. Of what is taken and on disk some
// may have been found before it, and after a crash all of it is compared again. The caller holds mu.
func (l *Line) release(listener int) {
	held, lst := &l.held[listener], l.listeners[listener]
	if held.mark != "" && lst.delivered.empty() && !lst.spools() {
		l.marks[listener].Written(max(held.seq, l.skipped[listener]), held.mark)
		*held = heldMark{}
	}
}

// save commits the batch, less the marks that a rewind has taken back since advance.
func (l *Line) save(store *checkpoint.Store, batch checkpoint.Batch) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	for i, lst := range l.listeners {
		if mark, found := batch.Marks[lst.Name]; found && mark != l.saved[i] {
			delete(batch.Marks, lst.Name)
		}
	}
	l.mu.Unlock()
	if err := store.Commit(batch); err != nil {
		return err
	}
	for i, lst := range l.listeners {
		if mark, found := batch.Marks[lst.Name]; found {
			l.durable[i] = mark
		}
	}
	return nil
}

// savedMark is where a crash would find the listener's sink.
func (l *Line) savedMark(listener int) sink.Mark {
	l.saving.Lock()
	defer l.saving.Unlock()
	return l.durable[listener]
}

// rewind makes the mark the one to go on from, after a log has lost records.
func (l *Line) rewind(listener int, mark sink.Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[listener], l.held[listener], l.saved[listener] = checkpoint.Marks{}, heldMark{}, mark
	l.marks[listener].Written(0, mark)
}

// advance returns what may be saved now, in parts that each may be one batch: the records that every listener
// acknowledged, or that go to disk for it, with all before them (I2), and with the last of them the marks up to which nothing
// will be asked for again.
func (l *Line) advance() []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := collector{line: l}
	frontier, spooling := l.number.Last()+1, l.spooling()
	for _, p := range l.streams {
		p.tracker.AdvanceOver(spooling, c.give)
		if first, ok := p.tracker.First(); ok {
			frontier = min(frontier, first)
		}
	}
	for _, p := range c.parts {
		p.close(l.listeners)
		l.leaving = append(l.leaving, p.records...)
	}
	l.relax()
	l.loosen(spooling)
	last := c.last()
	for i, lst := range l.listeners {
		if !lst.isBehind() { // what is on disk is still to be compared
			lst.delivered.dropOver()
			for _, p := range c.parts {
				lst.delivered.pass(p.records)
			}
		}
		l.release(i)
		if mark, ok := l.marks[i].At(frontier); ok && mark != l.saved[i] {
			last.marks[lst.Name], l.saved[i] = mark, mark
			if l.based[i] {
				last.compared, l.based[i] = append(last.compared, lst.Name), false
			}
		}
	}
	return c.parts
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

// Drain returns when everything that the stream pushed before is delivered and saved, or with ctx's error.
func (l *Line) Drain(ctx context.Context, stream change.Stream) error {
	l.mu.Lock()
	p := l.progress(stream.String())
	goal := p.added
	l.mu.Unlock()
	l.wakeCommitter() // the last record may be a bookmark
	return l.await(ctx, func() bool { return p.committed >= goal })
}

// behind is how many records of the stream are not delivered and saved.
func (l *Line) behind(stream change.Stream) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.progress(stream.String())
	return p.added - p.committed
}

// Ghosts are the stream's objects that a sink's log holds and the saved state does not know, or no longer.
func (l *Line) Ghosts(stream change.Stream) []change.Ghost {
	var ghosts []change.Ghost
	for _, lst := range l.listeners {
		for _, entry := range lst.delivered.ask(stream.String()) {
			ghosts = append(ghosts, change.Ghost{Sink: lst.Name, Entry: entry})
		}
		for _, entry := range lst.stranded.of(stream.String()) {
			ghosts = append(ghosts, change.Ghost{Sink: lst.Name, Entry: entry, Stranded: true})
		}
	}
	return ghosts
}
