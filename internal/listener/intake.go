package listener

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Intake is the readers' view of a sink: how far it was given each resource, and the queue of what it does not have
// yet. It is for any goroutine. Of one stream one goroutine at a time gives it changes (I3).
type Intake struct {
	Sink
	clusterUID string
	observer   Observer
	shown      shown
	savedMark  atomic.Pointer[sink.Mark] // the mark that is saved
	state      *checkpoint.SinkState     // Books' lock guards what is applied to it; what any goroutine may ask is asked here

	mu       sync.Mutex // guards the following
	life     Life
	follower *Follower // nil while nothing is offered
	servings uint64    // so often was the sink made one that is offered everything
	backlog  *fifo.Backlog
	told     map[checkpoint.Object]onWay
	pushed   map[uint64]struct{}    // Seqs of what came by Config.Push, and is neither delivered nor on disk
	own      map[uint64]entry       // by Seq: what the saved state is to know where the record does not say it
	resolved map[part]time.Time     // when each was resolved last
	proofs   map[part]*change.Proof // of what was resolved last, and is saved
	ledger   ledger
	numbers  *Numbers
	resource resourceName
	cut      context.CancelFunc // ends the writing without delivering what is left; nil while nobody writes
	freed    chan struct{}      // closed and made anew when there may be room, and when the sink is offered something no more
	ready    sink.Bell          // there is something to take, or nothing more will come
	work     func(now bool)     // has the committer look, at once or soon
}

// Life is where a sink is in its life.
//
//	life     the sink                                        is offered           goes on as
//	Opening  is being opened, or waits for another attempt   nothing              Serving, Halted
//	Serving  is open at its mark, or is opened again there   everything           Halted, Opening
//	Halted   failed for good: a person must mend it          what goes to disk    Serving, Opening
type Life byte

// The lives of a sink.
const (
	Opening Life = iota
	Serving
	Halted
)

// onWay is what the sink was told last of an object, and is not saved yet.
type onWay struct {
	row  checkpoint.Row
	seq  uint64
	kept *checkpoint.KeptObject // the newest that is kept of it, nil is none
}

// resourceName remembers the name of the stream that was asked for last.
type resourceName struct {
	of   *change.Stream
	name string
}

func (r *resourceName) get(stream *change.Stream) string {
	if r.of != stream {
		r.of, r.name = stream, stream.Resource.String()
	}
	return r.name
}

func newIntake(s *Sink, config *Config, numbers *Numbers) Intake {
	return Intake{
		numbers: numbers, clusterUID: config.ClusterUID,
		Sink: *s, observer: config.Observer, work: config.Work,
		backlog: fifo.NewBacklog(fifo.Options{Queue: s.Queue, Coalesce: s.Coalesce, Spool: s.Spool, Batch: BatchLimit()}),
		told:    map[checkpoint.Object]onWay{}, pushed: map[uint64]struct{}{}, own: map[uint64]entry{}, resolved: map[part]time.Time{}, proofs: map[part]*change.Proof{},
		freed: make(chan struct{}), ready: sink.NewBell(),
	}
}

// BatchLimit bounds one Write: large enough to amortise a sync, small enough that a sink's memory stays small beside
// its queue. What goes to disk is read again in batches of this size.
func BatchLimit() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: 2048} }

// use uses the backlog, and then tells whom that concerns.
func (i *Intake) use(do func(b *fifo.Backlog)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do(i.backlog)
	i.signal()
}

// signal tells whom the uses of the backlog concern; the caller holds mu.
func (i *Intake) signal() {
	signals := i.backlog.Signals()
	if signals.Freed {
		i.wakeWaiting()
	}
	if signals.Ready {
		i.ready.Ring()
	}
	if signals.Changed {
		i.observer.Queued(i.Name, i.backlog.Levels())
	}
	if i.cut != nil && i.backlog.Rests() {
		time.AfterFunc(stopGrace, i.cut)
		i.cut = nil
	}
}

// stopGrace is how long a write may go on after a stop when all that it writes is on disk, too: the next start
// continues there.
const stopGrace = time.Second

// wakeWaiting wakes those who wait for room; the caller holds mu.
func (i *Intake) wakeWaiting() {
	close(i.freed)
	i.freed = make(chan struct{})
}

// query asks the backlog.
func query[T any](i *Intake, what func(*fifo.Backlog) T) T {
	i.mu.Lock()
	defer i.mu.Unlock()
	return what(i.backlog)
}

// Life is where the sink is.
func (i *Intake) Life() Life {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.life
}

// IsOffered says whether the sink is to be given the stream now: it takes it, is open, and its format can encode it.
func (i *Intake) IsOffered(stream *change.Stream) bool {
	if !i.Takes(stream) || i.Gate != nil && !i.Gate.Admits(stream) {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.follower != nil
}

// Takes says whether the sink takes the stream's records.
func (i *Intake) Takes(stream *change.Stream) bool { return i.Wants == nil || i.Wants(stream) }

// putSilent notes what no sink is given, since its user does not want it: it counts as told. The caller holds mu.
func (i *Intake) putSilent(rec *change.Record, item checkpoint.Item) {
	i.putOwn(bookmarkOf(rec, item.Given.Version), item, i.keptOf(rec))
}

// pointOf is the version in the record's history.
func pointOf(rec *change.Record, version string) checkpoint.Point {
	return checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: version}
}

// reserve takes room for the record, and says whether there is none. A queue without room goes to disk, where it can.
// The caller holds mu.
func (i *Intake) reserve(rec *change.Record) (full bool) {
	if i.backlog.Reserve(rec) {
		return false
	}
	if i.backlog.StartSpill() {
		i.work(true)
	}
	return true
}

// put queues a record whose room is reserved, and of whose object it tells. What it has made superfluous the sink will
// never be given: then it is not the last, and the position does not move with it, but when all before it is written.
// The caller holds mu.
func (i *Intake) put(rec *change.Record, item checkpoint.Item) {
	merged := i.backlog.Push(rec)
	i.tell(rec, &item, i.keptOf(rec))
	if len(merged) == 0 {
		return
	}
	for _, old := range merged {
		delete(i.own, old.Seq)
	}
	i.observer.Coalesced(i.Name, len(merged))
	if given := rec.Given; given != "" {
		rec.Given = ""
		i.move(rec, checkpoint.Point{History: item.At.History, Version: given})
	}
}

// tell notes what the sink is told of an object with the queued record, and what is kept of it then. The caller holds
// mu.
func (i *Intake) tell(queued *change.Record, item *checkpoint.Item, kept *checkpoint.KeptObject) {
	of := item.Object()
	i.told[detached(of)] = onWay{
		checkpoint.Row{At: item.At, UID: item.UID, Gone: item.Gone}, queued.Seq, cmp.Or(kept, i.told[of].kept),
	}
}

// detached is the object without the memory of the frame that names it.
func detached(of checkpoint.Object) checkpoint.Object {
	of.Key = clone(of.Key)
	return of
}

func clone(key change.Key) change.Key {
	return change.Key{Namespace: strings.Clone(key.Namespace), Name: strings.Clone(key.Name)}
}

// keptOf is what is kept of the record's object when the sink has it, nil where that stays as it was.
func (i *Intake) keptOf(rec *change.Record) *checkpoint.KeptObject {
	object, changed := rec.Keeps()
	if !changed {
		return nil
	}
	return &checkpoint.KeptObject{Stream: rec.Stream.String(), Key: clone(rec.Key), Image: change.Image{
		UID: strings.Clone(rec.UID), Version: strings.Clone(rec.ResourceVersion), Object: object, Sinks: []string{i.Name},
	}}
}

// putOwn queues a record that says less than the item, and than what is kept of its object, whether there is room or
// not. What is kept by the records that it takes the place of is kept with it. The caller holds mu.
func (i *Intake) putOwn(rec *change.Record, item checkpoint.Item, kept *checkpoint.KeptObject) {
	merged := i.overdraw(rec)
	i.own[rec.Seq] = entry{Item: item, kept: kept}
	if item.Kind == checkpoint.Told || kept != nil {
		i.tell(rec, &item, kept)
	}
	for _, old := range merged {
		was, is := i.own[old.Seq]
		if !is {
			was.kept = i.keptOf(old)
		}
		if delete(i.own, old.Seq); kept == nil && old != rec {
			kept = was.kept
			i.own[rec.Seq] = entry{Item: item, kept: kept}
		}
	}
}

// overdraw queues a record whether there is room or not, and returns what it has made superfluous. The caller holds mu.
func (i *Intake) overdraw(rec *change.Record) (merged []*change.Record) {
	i.backlog.Overdraw(rec.Size())
	return i.backlog.Push(rec)
}

// move queues that the stream of the record was given up to the point. The caller holds mu.
func (i *Intake) move(rec *change.Record, to checkpoint.Point) {
	last := i.backlog.Last()
	if last != nil && last.Op == change.Bookmark && last.Stream != nil && last.Stream == rec.Stream && last.Epoch == rec.Epoch {
		if _, says := i.own[last.Seq]; !says {
			last.Given = to.Version
			return
		}
	}
	i.overdraw(bookmarkOf(rec, to.Version))
}

// toldItem is what the record tells.
func toldItem(rec *change.Record, resource string, scope checkpoint.Scope) checkpoint.Item {
	return checkpoint.Item{
		Kind: checkpoint.Told, Resource: resource, Scope: scope, At: pointOf(rec, rec.ResourceVersion), Key: rec.Key, UID: rec.UID,
		Gone: rec.Op == change.Deleted,
	}
}

// bookmarkOf moves the stream of the record.
func bookmarkOf(rec *change.Record, given string) *change.Record {
	return &change.Record{Stream: rec.Stream, Op: change.Bookmark, ResourceVersion: given, Received: rec.Received, Epoch: rec.Epoch, Given: given}
}

// Numbers are those of comparisons, which rise over all sinks: each has its own.
type Numbers struct{ last atomic.Int64 }

// next is the next number: of now, in milliseconds since 1970, as a rule.
func (n *Numbers) next() int64 {
	n.raise(time.Now().UnixMilli() - 1)
	return n.last.Add(1)
}

// raise makes the next number higher than the given one.
func (n *Numbers) raise(to int64) {
	for last := n.last.Load(); last < to && !n.last.CompareAndSwap(last, to); last = n.last.Load() {
	}
}

// PartID names a snapshot of chosen objects.
func (i *Intake) PartID(version string) string { return i.ids(version) + checkpoint.PartSuffix }

// NewestComparison is the number of the comparison of any sink that was begun last.
func (i *Intake) NewestComparison() int64 { return i.numbers.last.Load() }

// ids names comparisons.
func (i *Intake) ids(version string) string {
	return version + "." + strconv.FormatInt(i.numbers.next(), 10)
}

// Newest is what the sink was told last of the object, also by what is on its way.
func (i *Intake) Newest(of checkpoint.Object) (checkpoint.Row, error) {
	i.mu.Lock()
	on, is := i.told[of]
	i.mu.Unlock()
	if is {
		return on.row, nil
	}
	return i.state.SavedRow(of)
}

// NewestOf is Newest of objects of one resource, whose keys rise as a rule. It holds for as long as nobody tells the
// sink of them.
func (i *Intake) NewestOf(all []checkpoint.Object) (map[checkpoint.Object]checkpoint.Row, error) {
	on := map[checkpoint.Object]checkpoint.Row{}
	var saved []checkpoint.Object
	i.mu.Lock()
	for _, of := range all {
		if told, is := i.told[of]; is {
			on[of] = told.row
		} else {
			saved = append(saved, of)
		}
	}
	i.mu.Unlock()
	if len(saved) == 0 {
		return on, nil
	}
	rows, err := i.state.SavedRows(saved) // after that: what leaves the way is saved
	if err != nil {
		return nil, err
	}
	maps.Copy(rows, on)
	return rows, nil
}

// Below returns when the queue has less than so many bytes, and nothing is on disk, or with ctx's error; where it has
// to wait, half of them are enough, and waited is true. It does not wait for a sink that is offered nothing.
func (i *Intake) Below(ctx context.Context, bytes int) (waited bool, err error) {
	err = i.await(ctx, func() bool {
		if i.follower == nil || i.backlog.IsBelow(bytes) {
			return true
		}
		if !waited {
			waited, bytes = true, bytes/2
		}
		return false
	})
	return waited, err
}

// HalfFree returns when half of the queue is free, whatever is on disk, or the sink is offered nothing, or with ctx's
// error.
func (i *Intake) HalfFree(ctx context.Context) error {
	return i.await(ctx, func() bool { return i.follower == nil || i.backlog.IsHalfFree() })
}

// await returns when it is so, which is asked under mu whenever there may be room, or with ctx's error.
func (i *Intake) await(ctx context.Context, is func() bool) error {
	for {
		i.mu.Lock()
		reached, freed := is(), i.freed
		i.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Room is closed when there may be room in the queue that had none, or the sink is offered nothing any more.
func (i *Intake) Room() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.freed
}

// Push queues a record that belongs to no stream that is read. It blocks while the queue is full, and leaves the record
// out where the sink is offered nothing.
func (i *Intake) Push(ctx context.Context, rec *change.Record) error {
	return i.await(ctx, func() bool {
		switch {
		case i.follower == nil:
			return true
		case i.reserve(rec):
			return false
		}
		one := *rec
		i.backlog.Push(&one)
		if one.Op == change.Actor {
			i.pushed[one.Seq] = struct{}{}
		}
		i.signal()
		return true
	})
}

// Finish says that nothing more will be pushed: Run returns when the queue is empty.
func (i *Intake) Finish() {
	i.use(func(b *fifo.Backlog) {
		b.Finish()
		switch {
		case (i.cut == nil || i.life == Halted) && b.CanSpill(), i.Coalesce && b.Behind(): // what is queued need not be read again
			b.StartSpill()
			i.work(true)
		case i.life == Halted && i.cut != nil: // nobody will take what is queued
			i.cut()
			i.cut = nil
		}
	})
}

// Unsaved is how many records are neither delivered nor on disk.
func (i *Intake) Unsaved() int { return query(i, (*fifo.Backlog).Unsaved) }

// serve makes the sink one that is offered everything, from what is saved on, and before that is told what tell tells.
// The caller holds the Books' lock.
func (i *Intake) serve(tell func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = Serving
	i.shown.showAll(i.state)
	for _, places := range i.state.Given().Places {
		for _, place := range places {
			i.numbers.raise(place.Comparison.Number())
		}
	}
	i.servings++
	clear(i.proofs)
	i.follower = NewFollower(i.state.Given(), i.ids)
	tell()
}

// halt notes that the sink failed for good. One that has a disk is given everything all the same, and goes on where it
// was. Another one leaves: anew is that it is to be opened as in a new process.
func (i *Intake) halt() (anew bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = Halted
	anew = !i.backlog.CanSpill() || i.follower == nil
	if i.backlog.IsFinished() && i.backlog.StartSpill() {
		i.work(true)
	}
	return anew
}

// resume notes that the sink is open again.
func (i *Intake) resume() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = Serving
}

// leave makes the sink one that is offered nothing: its positions stay, and what is queued is read again when it is
// open. The letters that waited in the queue stay letters.
func (i *Intake) leave() {
	i.mu.Lock()
	i.follower = nil
	if i.life == Serving {
		i.life = Opening
	}
	dismissed := i.backlog.Dismiss()
	clear(i.told)
	clear(i.own)
	clear(i.pushed)
	i.ledger = ledger{} // the sink's log has it
	i.wakeWaiting()
	i.signal()
	i.mu.Unlock()
	for _, rec := range dismissed {
		if rec.Replay != nil {
			rec.Replay.Done("", fmt.Errorf("sink %s is stopped: try again when it is open", i.Name))
		}
	}
}

// Drain returns when everything that was pushed before is delivered or on disk, or the sink is offered nothing any
// more, or with ctx's error.
func (i *Intake) Drain(ctx context.Context) error {
	i.mu.Lock()
	before := slices.Collect(maps.Keys(i.pushed))
	i.mu.Unlock()
	return i.await(ctx, func() bool {
		return !slices.ContainsFunc(before, func(seq uint64) bool { _, left := i.pushed[seq]; return left })
	})
}

// settleBeside notes that the records are delivered, or on disk. The caller holds mu.
func (i *Intake) settleBeside(records []*change.Record) {
	for _, rec := range records {
		delete(i.pushed, rec.Seq)
	}
}

// Config is what the listeners of a run have in common.
type Config struct {
	ClusterUID string
	Store      *checkpoint.Store
	Streams    func() []*change.Stream    // that are configured now
	Reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Observer   Observer
	Stops      *Stops
	// Prove, where set, is asked whenever a sink was opened, before anything is written to it: nil says that nobody
	// else had taken over by then. A *sink.PermanentError stops the sink; after any other error it is asked again.
	Prove func(ctx context.Context) error
	Work  func(now bool)  // has the committer look, at once or soon
	Serve func(l *Intake) // the sink is offered everything from now on
}
