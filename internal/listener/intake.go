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

// Intake is a sink as sources see it: how far it was given each resource, and the queue of what it does not have yet.
// It is for any goroutine, but only one at a time gives it the changes of a stream (I3).
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
	servings uint64    // how often serve was called
	backlog  *fifo.Backlog
	told     map[checkpoint.Object]onWay
	pushed   map[uint64]struct{}    // Seqs of what came by Config.Push, and is neither delivered nor on disk
	own      map[uint64]entry       // by Seq: the entry of a record that does not say by itself what is to be saved
	resolved map[part]time.Time     // when a Resolved record was made last
	proofs   map[part]*change.Proof // of the last Resolved record that is saved
	ledger   ledger
	numbers  *Numbers
	resource resourceName
	cut      context.CancelFunc // ends the writing without delivering what is left; nil while nobody writes
	freed    chan struct{}      // closed and replaced when there may be room, and when the sink is offered nothing more
	ready    sink.Bell          // there is something to take, or nothing more will come
	work     func(now bool)     // wakes the committer, at once or soon
}

// Life is the state of a sink.
//
//	life     the sink                                        is offered                             goes on as
//	Opening  is being opened, or waits for another attempt   nothing                                Serving, Halted
//	Serving  is open at its mark, or is opened again there   everything                             Halted, Opening
//	Halted   failed for good: a person must mend it          everything, if it served, and spills   Serving
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
	kept *checkpoint.KeptObject // the newest form that is kept of it; nil if none is on its way
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

// BatchLimit bounds one Write: large enough to amortise a sync, small enough that a batch is small beside the queue.
// Records on disk are read in batches of this size, too.
func BatchLimit() fifo.Limit { return fifo.Limit{Bytes: 4 << 20, Records: 2048} }

// use calls the backlog, and then wakes those whom its Signals name.
func (i *Intake) use(do func(b *fifo.Backlog)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do(i.backlog)
	i.signal()
}

// signal wakes those whom the backlog's Signals name. The caller holds mu.
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

// stopGrace is how long a write may go on after a stop if everything that it writes is on disk, too: the next start
// continues there.
const stopGrace = time.Second

// wakeWaiting wakes those who wait for room. The caller holds mu.
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

// Life is the state of the sink.
func (i *Intake) Life() Life {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.life
}

// IsOffered says whether the sink is to be given the stream now: it takes it, its Gate admits it, and it is served.
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

// putSilent queues a bookmark in the place of a record that this sink need not get: its state counts as told. The
// caller holds mu.
func (i *Intake) putSilent(rec *change.Record, item checkpoint.Item) {
	i.putOwn(bookmarkOf(rec, item.Given.Version), item, i.keptOf(rec))
}

// pointOf is the point of the version in the record's history.
func pointOf(rec *change.Record, version string) checkpoint.Point {
	return checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: version}
}

// reserve reserves room for the record. full is true if there is none, which starts a spill if the sink has one. The
// caller holds mu.
func (i *Intake) reserve(rec *change.Record) (full bool) {
	if i.backlog.Reserve(rec) {
		return false
	}
	if i.backlog.StartSpill() {
		i.work(true)
	}
	return true
}

// put queues a record of an object, whose room is reserved. If it has taken the place of older records, it is not the
// last in the queue. So the position does not move with it, but with a bookmark behind all that is queued. The caller
// holds mu.
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

// tell notes what the queued record tells the sink of an object, and what is kept of that. The caller holds mu.
func (i *Intake) tell(queued *change.Record, item *checkpoint.Item, kept *checkpoint.KeptObject) {
	of := item.Object()
	i.told[detached(of)] = onWay{
		checkpoint.Row{At: item.At, UID: item.UID, Gone: item.Gone}, queued.Seq, cmp.Or(kept, i.told[of].kept),
	}
}

// detached is a copy of the object that does not keep the memory of its frame alive.
func detached(of checkpoint.Object) checkpoint.Object {
	of.Key = clone(of.Key)
	return of
}

func clone(key change.Key) change.Key {
	return change.Key{Namespace: strings.Clone(key.Namespace), Name: strings.Clone(key.Name)}
}

// keptOf is what is to be kept of the record's object once the sink has it; nil leaves that as it is.
func (i *Intake) keptOf(rec *change.Record) *checkpoint.KeptObject {
	object, changed := rec.Keeps()
	if !changed {
		return nil
	}
	return &checkpoint.KeptObject{Stream: rec.Stream.String(), Key: clone(rec.Key), Image: change.Image{
		UID: strings.Clone(rec.UID), Version: strings.Clone(rec.ResourceVersion), Object: object, Sinks: []string{i.Name},
	}}
}

// putOwn queues a record together with what it does not say by itself: the item, and what is kept of its object. It
// needs no room. If it supersedes records, it also keeps what they would have kept. The caller holds mu.
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

// overdraw queues a record even if there is no room, and returns the records that it supersedes. The caller holds mu.
func (i *Intake) overdraw(rec *change.Record) (merged []*change.Record) {
	i.backlog.Overdraw(rec.Size())
	return i.backlog.Push(rec)
}

// move queues a bookmark: the record's stream was given up to the point. The caller holds mu.
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

// toldItem is the item of a record of an object.
func toldItem(rec *change.Record, resource string, scope checkpoint.Scope) checkpoint.Item {
	return checkpoint.Item{
		Kind: checkpoint.Told, Resource: resource, Scope: scope, At: pointOf(rec, rec.ResourceVersion), Key: rec.Key, UID: rec.UID,
		Gone: rec.Op == change.Deleted,
	}
}

// bookmarkOf is a bookmark of the record's stream.
func bookmarkOf(rec *change.Record, given string) *change.Record {
	return &change.Record{Stream: rec.Stream, Op: change.Bookmark, ResourceVersion: given, Received: rec.Received, Epoch: rec.Epoch, Given: given}
}

// Numbers are the numbers of comparisons. They rise over all sinks, and no two comparisons have the same.
type Numbers struct{ last atomic.Int64 }

// next is the next number: as a rule the time in milliseconds since 1970.
func (n *Numbers) next() int64 {
	n.raise(time.Now().UnixMilli() - 1)
	return n.last.Add(1)
}

// raise makes the next number higher than to.
func (n *Numbers) raise(to int64) {
	for last := n.last.Load(); last < to && !n.last.CompareAndSwap(last, to); last = n.last.Load() {
	}
}

// PartID makes the ID of a snapshot of chosen objects.
func (i *Intake) PartID(version string) string { return i.ids(version) + checkpoint.PartSuffix }

// NewestComparison is the number of the comparison that was begun last, of any sink.
func (i *Intake) NewestComparison() int64 { return i.numbers.last.Load() }

// ids makes the IDs of comparisons.
func (i *Intake) ids(version string) string {
	return version + "." + strconv.FormatInt(i.numbers.next(), 10)
}

// Newest is what the sink was told last of the object, including what is on its way.
func (i *Intake) Newest(of checkpoint.Object) (checkpoint.Row, error) {
	i.mu.Lock()
	on, is := i.told[of]
	i.mu.Unlock()
	if is {
		return on.row, nil
	}
	return i.state.SavedRow(of)
}

// NewestOf is Newest of many objects of one resource; it is fast if their keys rise. The answer holds until the sink is
// told of one of them.
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
	rows, err := i.state.SavedRows(saved) // after told: what leaves told is saved
	if err != nil {
		return nil, err
	}
	maps.Copy(rows, on)
	return rows, nil
}

// Below returns when the queue is half free and has less than so many bytes, and nothing is on disk, or with ctx's
// error. If it has to wait, it waits until there are less than half as many, and waited is true. It does not wait for a
// sink that is offered nothing.
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

// HalfFree returns when half of the queue is free, whatever is on disk, or when the sink is offered nothing, or with
// ctx's error.
func (i *Intake) HalfFree(ctx context.Context) error {
	return i.await(ctx, func() bool { return i.follower == nil || i.backlog.IsHalfFree() })
}

// await returns when is returns true, or with ctx's error. It calls is under mu, again whenever there may be room.
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

// Room is closed when there may be room again, or when the sink is not offered anything any more.
func (i *Intake) Room() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.freed
}

// Push queues a record that no watch has brought: of an actor, or a dead letter. It blocks while the queue is full. If
// the sink is offered nothing, it drops the record; for a dead letter, which somebody waits for, that is an error.
func (i *Intake) Push(ctx context.Context, rec *change.Record) error {
	dropped := false
	err := i.await(ctx, func() bool {
		switch {
		case i.follower == nil:
			dropped = true
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
	if err == nil && dropped && rec.Replay != nil {
		return i.errStopped()
	}
	return err
}

func (i *Intake) errStopped() error {
	return fmt.Errorf("sink %s is stopped: try again when it is open", i.Name)
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

// serve lets the sink be offered everything that follows what is saved. Before that, tell queues what the sink is to be
// told first. The caller holds the Books' lock.
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

// halt notes that the sink failed for good. If it served, and may spill, it is still offered everything, and goes on
// where it was. Otherwise anew is true: it has to leave, and to be opened as in a new process.
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

// resume notes that the sink is open again, and goes on.
func (i *Intake) resume() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life = Serving
}

// leave lets the sink be offered nothing. Its positions stay, so what is queued is read again when it is open. The dead
// letters in the queue stay dead letters.
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
			rec.Replay.Done("", i.errStopped())
		}
	}
}

// Drain returns when every actor's record that was pushed before is delivered or on disk, or the sink has left, or with
// ctx's error.
func (i *Intake) Drain(ctx context.Context) error {
	i.mu.Lock()
	before := slices.Collect(maps.Keys(i.pushed))
	i.mu.Unlock()
	return i.await(ctx, func() bool {
		return !slices.ContainsFunc(before, func(seq uint64) bool { _, left := i.pushed[seq]; return left })
	})
}

// settlePushed notes that the records are delivered or on disk. The caller holds mu.
func (i *Intake) settlePushed(records []*change.Record) {
	for _, rec := range records {
		delete(i.pushed, rec.Seq)
	}
}

// Config is what the listeners of a run have in common.
type Config struct {
	ClusterUID string
	Store      *checkpoint.Store
	Streams    func() []*change.Stream    // that are read now
	Reshape    func(*change.Record) error // nil leaves what comes from disk as it is
	Observer   Observer
	Stops      *Stops
	// Prove, if set, is called whenever a sink was opened, before anything is written to it. nil proves that nobody
	// else had taken over by then. A *sink.PermanentError stops the sink; after any other error Prove is called again.
	Prove func(ctx context.Context) error
	Work  func(now bool)  // wakes the committer, at once or soon
	Serve func(l *Intake) // is told that the sink is offered everything from now on
}
