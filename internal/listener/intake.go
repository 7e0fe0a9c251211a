package listener

import (
	"context"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Intake is a sink as those see it who read the cluster for it: how far it was given each resource, and the queue of
// what it does not have yet. It is for any goroutine. Of one stream one goroutine at a time gives it changes (I3).
type Intake struct {
	Sink
	clusterUID string
	observer   Observer
	shown      shown

	mu       sync.Mutex // guards the following
	life     Life
	follower *Follower // nil while nothing is offered
	served   uint64    // so often was the sink made one that is offered everything
	backlog  *fifo.Backlog
	number   fifo.Numberer
	told     map[checkpoint.Object]onWay
	beside   beside
	own      map[uint64]checkpoint.Item // by Seq: what the saved state is to know where the record does not say it
	ledger   ledger
	state    *checkpoint.SinkState // what any goroutine may ask is asked here
	numbers  *Numbers
	resource resourceName
	cut      context.CancelFunc // ends the writing without delivering what is left; nil while nobody writes
	freed    chan struct{}      // closed and made anew when there may be room, and when the sink is offered something no more
	ready    chan struct{}      // buffered 1: there is something to take, or nothing more will come
	work     func(now bool)     // has the committer look, at once or soon
	ended    EndFunc
}

// EndFunc is told of the end of a comparison that is saved. It returns at once.
type EndFunc func(sinkName string, end *checkpoint.Item)

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
	row checkpoint.Row
	seq uint64
}

// held is the Seq of what is told and not in the queue yet.
const held = math.MaxUint64

// ledger is what is to be saved of what the sink has acknowledged.
type ledger struct {
	entries []entry
	mark    string
	marked  bool
	size    int // bytes of the records, about
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
		Sink: *s, observer: config.Observer, work: config.Work, ended: config.Ended,
		backlog: fifo.NewBacklog(fifo.Options{Queue: s.Queue, Coalesce: s.Coalesce, Spool: s.Spool, Batch: BatchLimit()}),
		told:    map[checkpoint.Object]onWay{}, beside: beside{}, own: map[uint64]checkpoint.Item{},
		freed: make(chan struct{}), ready: make(chan struct{}, 1),
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
		select {
		case i.ready <- struct{}{}:
		default:
		}
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

// Seat is a sink as one watch of a stream sees it, from one opening of the sink on: after another one the sink goes on
// from what is saved then, and the seat is of no use any more.
type Seat struct {
	*Intake
	life uint64
}

// Seat is the sink's seat, false where it is offered nothing.
func (i *Intake) Seat() (seat *Seat, offered bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &Seat{i, i.served}, i.follower != nil
}

// at is what the sink was given, nil where the seat is of no use any more. The caller holds mu.
func (s *Seat) at() *Follower {
	if s.served != s.life {
		return nil
	}
	return s.follower
}

// IsOver says whether the seat is of no use any more.
func (s *Seat) IsOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at() == nil
}

// Answer is what becomes of a change that the sink is offered.
type Answer byte

const (
	Accepted   Answer = iota // it is in the queue, or need not be
	NoRoom                   // the queue has none for it
	NotOffered               // the sink is not to be given the stream now
)

// Offer gives the sink a change that a watch of the stream has brought, in the shape that all sinks share. base is the
// version of the record's Before.
func (s *Seat) Offer(rec *change.Record, way *Way, base string) (Answer, error) {
	if s.Gate != nil && !s.Gate.Admits(rec.Stream) {
		return NotOffered, nil
	}
	item := toldItem(rec, way)
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return NotOffered, nil
	}
	if s.reserve(rec) {
		return NoRoom, nil
	}
	newest := func() (checkpoint.Row, error) {
		s.mu.Unlock() // the disk may take its time, and of this stream nobody else tells the sink anything
		defer s.mu.Lock()
		return s.Newest(item.Object())
	}
	as, last, err := follower.Offer(&item, *way, newest)
	if rec.Ignored && as == Taken && !last.Known() && err == nil {
		last, err = newest()
	}
	if err != nil || s.at() != follower {
		s.backlog.Cancel(rec.Size())
		return NotOffered, err
	}
	defer s.signal()
	switch as {
	case Skipped, Moved:
		s.backlog.Cancel(rec.Size())
		if as == Moved {
			s.move(rec, item.Given)
		}
		return Accepted, nil
	case Replaces:
		gone := goneRecord(rec, item.Key, last, item.At.Below())
		s.backlog.Overdraw(gone.Size())
		s.put(gone, Deleted(item.Object(), way.Scope, last, item.At.Below()))
	}
	if rec.Filtered || rec.Ignored && last.Exists() {
		s.backlog.Cancel(rec.Size())
		s.putSilent(rec, item)
		return Accepted, nil
	}
	one := *rec
	if last.Known() && last.At.Version != base { // the sink has another state of it, or none
		one.Before = nil
	}
	one.Given = item.Given.Version
	s.put(&one, item)
	return Accepted, nil
}

// Tell gives the sink what a comparison has found.
func (s *Seat) Tell(rec *change.Record, item checkpoint.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return
	}
	defer s.signal()
	if item.Kind == checkpoint.Told {
		follower.Tell(&item)
	}
	if rec.Filtered {
		s.putSilent(rec, item)
		return
	}
	s.backlog.Overdraw(rec.Size())
	switch {
	case item.Kind == checkpoint.Told:
		s.put(rec, item)
		return
	case item.Kind == checkpoint.Sync && s.Coalesce && rec.Op == change.Sync: // it may take the place of what told the sink
		item.Kind = checkpoint.Told
	}
	s.putOwn(rec, item)
}

// toldItem is what the record tells.
func toldItem(rec *change.Record, way *Way) checkpoint.Item {
	return checkpoint.Item{
		Kind: checkpoint.Told, Resource: way.Resource, Scope: way.Scope, At: pointOf(rec, rec.ResourceVersion), Key: rec.Key, UID: rec.UID,
		Gone: rec.Op == change.Deleted,
	}
}

// putSilent notes what no sink is given, since its user does not want it: it counts as told. The caller holds mu.
func (i *Intake) putSilent(rec *change.Record, item checkpoint.Item) {
	silent := bookmarkOf(rec, item.Given.Version)
	i.backlog.Overdraw(silent.Size())
	i.putOwn(silent, item)
}

// pointOf is the version in the record's history.
func pointOf(rec *change.Record, version string) checkpoint.Point {
	return checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: version}
}

// reserve takes room for the record, and says whether there is none. A queue without room goes to disk, where it can.
// The caller holds mu.
func (i *Intake) reserve(rec *change.Record) (full bool) {
	if i.backlog.SpillOverdue(rec.Received) {
		i.work(true)
	}
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
	i.number.Number(rec)
	i.told[detached(item.Object())] = onWay{checkpoint.Row{At: item.At, UID: item.UID, Gone: item.Gone}, rec.Seq}
	merged := i.backlog.Push(rec, true)
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

// detached is the object without the memory of the frame that names it.
func detached(of checkpoint.Object) checkpoint.Object {
	of.Key = change.Key{Namespace: strings.Clone(of.Key.Namespace), Name: strings.Clone(of.Key.Name)}
	return of
}

// putOwn queues a record that says less than the item. The caller holds mu.
func (i *Intake) putOwn(rec *change.Record, item checkpoint.Item) {
	i.number.Number(rec)
	i.own[rec.Seq] = item
	if item.Kind == checkpoint.Told {
		i.told[detached(item.Object())] = onWay{checkpoint.Row{At: item.At, UID: item.UID, Gone: item.Gone}, rec.Seq}
	}
	for _, old := range i.backlog.Push(rec, true) {
		delete(i.own, old.Seq)
	}
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
	bookmark := bookmarkOf(rec, to.Version)
	i.backlog.Overdraw(bookmark.Size())
	i.number.Number(bookmark)
	i.backlog.Push(bookmark, true)
}

// bookmarkOf moves the stream of the record.
func bookmarkOf(rec *change.Record, given string) *change.Record {
	return &change.Record{Stream: rec.Stream, Op: change.Bookmark, ResourceVersion: given, Received: rec.Received, Epoch: rec.Epoch, Given: given}
}

// goneRecord tells that an object is gone whose place another one has taken.
func goneRecord(rec *change.Record, key change.Key, last checkpoint.Row, at checkpoint.Point) *change.Record {
	return &change.Record{
		Stream: rec.Stream, Op: change.Deleted, Key: key, UID: last.UID, ResourceVersion: at.Version, Received: rec.Received,
		FinalStateUnknown: true, Snapshot: rec.Snapshot, Epoch: rec.Epoch,
	}
}

// Bookmark moves the sink on to the bookmark's version, and says whether it is still given the stream.
func (s *Seat) Bookmark(rec *change.Record, way *Way) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return false
	}
	to := pointOf(rec, rec.ResourceVersion)
	follower.Bookmark(*way, to)
	s.move(rec, to)
	s.signal()
	return true
}

// Framing makes a record of a frame.
type Framing func(seat *Seat, frame *checkpoint.Item) *change.Record

// Begin makes the sink go on with the stream where the server stands so.
func (s *Seat) Begin(way *Way, server Standing, framing Framing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		s.putFrames(follower.Begin(*way, server), framing)
	}
}

// Due begins the comparisons that are asked for, and can be begun.
func (s *Seat) Due(way *Way, framing Framing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		s.putFrames(follower.Due(*way), framing)
	}
}

// Renew begins the comparison anew, which is under way.
func (s *Seat) Renew(way *Way, c checkpoint.Comparison, framing Framing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		s.putFrames(follower.Renew(*way, c), framing)
	}
}

func (s *Seat) putFrames(frames []checkpoint.Item, framing Framing) {
	for at := range frames {
		if at > 0 && frames[at-1].Kind == checkpoint.Gap {
			frames[at].From = frames[at-1].From
		}
		rec := framing(s, &frames[at])
		s.backlog.Overdraw(rec.Size())
		s.putOwn(rec, frames[at])
	}
	s.signal()
}

// End tells the sink that the comparison is over. It is false where it is that already, or was withdrawn.
func (s *Seat) End(way *Way, c checkpoint.Comparison, rec *change.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return false
	}
	s.backlog.Overdraw(rec.Size())
	s.putOwn(rec, follower.End(way.Resource, c))
	s.signal()
	return true
}

// Withdraw takes full comparisons of the part of the stream off that are asked for or under way. The sink is told
// nothing.
func (s *Seat) Withdraw(way *Way, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return
	}
	follower.of(way.Resource).Each(checkpoint.Scope(namespace), func(name string, place checkpoint.Place) {
		place.Asked = ""
		follower.of(way.Resource)[name] = place
	})
	for _, c := range follower.Comparisons(*way) {
		if c.Full && c.Namespace == namespace {
			silent := &change.Record{Op: change.Bookmark, Received: time.Now()}
			s.backlog.Overdraw(silent.Size())
			s.putOwn(silent, follower.End(way.Resource, c))
		}
	}
	s.signal()
}

// Over tells the saved state that the stream is over.
func (s *Seat) Over(way *Way, stream *change.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return
	}
	silent := &change.Record{Stream: stream, Op: change.Bookmark, Received: time.Now()}
	s.backlog.Overdraw(silent.Size())
	s.putOwn(silent, checkpoint.Item{Kind: checkpoint.Over, Resource: way.Resource, Scope: way.Scope})
	follower.of(way.Resource).Leave(way.Scope)
	s.signal()
}

// Numbers are those of comparisons, which rise over all sinks: each has its own.
type Numbers struct {
	mu   sync.Mutex // guards the following
	last int64
}

// next is the next number: of now, in milliseconds since 1970, as a rule.
func (n *Numbers) next() int64 {
	n.raise(time.Now().UnixMilli() - 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return n.last
}

// newest is the number that was given last.
func (n *Numbers) newest() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// raise makes the next number higher than the given one.
func (n *Numbers) raise(to int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last, to)
}

// PartID names a snapshot of chosen objects.
func (i *Intake) PartID(version string) string { return i.ids(version, false) + checkpoint.PartSuffix }

// NewestComparison is the number of the comparison of any sink that was begun last.
func (i *Intake) NewestComparison() int64 { return i.numbers.newest() }

// ids names comparisons.
func (i *Intake) ids(version string, full bool) string {
	id := version + "." + strconv.FormatInt(i.numbers.next(), 10)
	if full {
		id += checkpoint.FullSuffix
	}
	return id
}

// Known is what a sink was given of a stream.
type Known struct {
	From    checkpoint.Point   // a watch from here gives it everything
	Highest checkpoint.Point   // nothing that is after this was told or passed
	History checkpoint.History // the newest of the resource
}

// Known is how far the sink was given the stream.
func (s *Seat) Known(way *Way) Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return Known{}
	}
	return follower.Known(*way)
}

// Reaches says whether the sink was given all of the namespace up to the version, or a watch has brought that.
func (s *Seat) Reaches(resource, namespace string, version checkpoint.Point) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return false
	}
	place, _ := follower.of(resource).Of(namespace)
	return !version.After(place.At) || !version.After(place.High)
}

// Passed is up to where the sink was given the namespace.
func (s *Seat) Passed(resource, namespace string) (at checkpoint.Point) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		at = follower.Passed(resource, namespace)
	}
	return at
}

// Has yields the keys of the resource, in the namespace or with Others in all, that the sink was told of: those after
// the joined key behind, up to the other one, "" for all. Some come twice, and some are of objects that are gone.
func (s *Seat) Has(resource, namespace, behind, upTo string) iter.Seq2[change.Key, error] {
	within := func(key change.Key) bool {
		joined := key.String()
		return (namespace == checkpoint.Others || key.Namespace == namespace) && joined > behind && (upTo == "" || joined <= upTo)
	}
	return func(yield func(change.Key, error) bool) {
		s.mu.Lock()
		var keys []change.Key
		for of := range s.told {
			if of.Resource == resource && within(of.Key) {
				keys = append(keys, of.Key)
			}
		}
		state := s.state
		s.mu.Unlock()
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
		for _, rows := range []iter.Seq2[checkpoint.SinkObject, error]{
			state.Objects(resource, namespace, behind), state.ObjectsOnDisk(resource, namespace, behind),
		} {
			for row, err := range rows {
				if err == nil && !within(row.Of.Key) {
					break // they come in the order of the keys
				}
				if !yield(row.Of.Key, err) || err != nil {
					return
				}
			}
		}
	}
}

// Newest is what the sink was told last of the object, also by what is on its way.
func (i *Intake) Newest(of checkpoint.Object) (checkpoint.Row, error) {
	i.mu.Lock()
	on, is := i.told[of]
	state := i.state
	i.mu.Unlock()
	if is {
		return on.row, nil
	}
	return state.SavedRow(of)
}

// Comparisons are those of the stream that are under way.
func (s *Seat) Comparisons(way *Way) []checkpoint.Comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	follower := s.at()
	if follower == nil {
		return nil
	}
	return follower.Comparisons(*way)
}

// Ask notes that a comparison of the stream is asked for.
func (s *Seat) Ask(way *Way, reason change.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if follower := s.at(); follower != nil {
		follower.Ask(*way, reason)
	}
}

// Below returns when the queue has less than so many bytes, and nothing is on disk, or with ctx's error; where it has
// to wait, half of them are enough, and waited is true. It does not wait for a sink that is offered nothing.
func (i *Intake) Below(ctx context.Context, bytes int) (waited bool, err error) {
	for {
		i.mu.Lock()
		reached, freed := i.follower == nil || i.backlog.IsBelow(bytes), i.freed
		i.mu.Unlock()
		if reached {
			return waited, nil
		}
		if !waited {
			waited, bytes = true, bytes/2
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return waited, context.Cause(ctx)
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
	for {
		i.mu.Lock()
		freed := i.freed
		if i.follower == nil {
			i.mu.Unlock()
			return nil
		}
		if !i.reserve(rec) {
			one := *rec
			i.number.Number(&one)
			i.beside.note(&one)
			i.backlog.Push(&one, true)
			i.signal()
			i.mu.Unlock()
			return nil
		}
		i.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// IsHalfFree says whether half of the queue is free, and nothing is on disk.
func (i *Intake) IsHalfFree() bool {
	return query(i, func(b *fifo.Backlog) bool { return b.IsBelow(math.MaxInt) })
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

// serve makes the sink one that is offered everything, from what is saved on.
func (i *Intake) serve(state *checkpoint.SinkState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.life = state, Serving
	i.shown.showAll(state)
	for _, places := range state.Given().Places {
		for _, place := range places {
			i.numbers.raise(place.Comparison.Number())
		}
	}
	i.served++
	i.follower = NewFollower(state.Given(), i.ids)
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
// open. It returns the letters that waited in the queue.
func (i *Intake) leave() (replays []*change.Record) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.follower = nil
	if i.life == Serving {
		i.life = Opening
	}
	for _, rec := range i.backlog.Dismiss() {
		delete(i.own, rec.Seq)
		if rec.Replay != nil {
			replays = append(replays, rec)
		}
	}
	clear(i.told)
	clear(i.own)
	clear(i.beside)
	i.ledger.drop() // the sink's log has it
	i.wakeWaiting()
	i.signal()
	return replays
}

// drop forgets what was acknowledged.
func (l *ledger) drop() { *l = ledger{} }
