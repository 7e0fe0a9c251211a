package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Informer is one watch of a stream, and the sinks that are given what it brings. client-go's Reflector runs it, with
// its rules for lists and watches, time limits, 410, 429, very short watches and backoff. The ListerWatcher, which
// lists nothing, and the decoder are ours.
//
// A watch begins at the lowest position of its sinks, and the others skip what they have by its version. What a watch
// cannot bring a comparison finds, whose list is read beside it.
type Informer struct {
	*Config
	shared  *common
	stream  *change.Stream
	way     listener.Way
	retries *wait.Backoff
	end     context.CancelFunc // ends run
	tryJoin func()             // lets sinks go on with the common watch if they may; the caller has the turn
	// askAgain passes the ask to the Informer that gives the sink the stream now; the caller has the turn.
	askAgain func(ask)
	alone    *listener.Intake // the sink for which it was begun; nil in the common Informer

	origin  origin
	silence silence
	exit    func() // gives back the stream's place in the Gate; nil if it has none
	endings endings
	refusal atomic.Pointer[refusal] // the newest of those in a row; nil is none

	turns    turns // guards the following
	seats    []*listener.Seat
	epoch    string // the history that is read, as of change.NewEpoch
	from     string // where the newest watch began
	brought  string // the highest version that a watch has brought, or began at
	seen     sightings
	proof    proof
	heard    time.Time     // when the last record was read; zero if there was none in this life
	lent     []byte        // the object of the frame under way, in memory into which the next frame is read
	lender   *frame.Reader // of lent
	stale    bool          // no watch can go on from any position
	forgot   string        // the server has forgotten what is before this version; "" is nothing
	comparer comparer
	fresh    map[string]bool // IDs of the full comparisons that began here, and whose lists were not begun
}

// roomWait is how long the other sinks of a watch wait for one whose queue is full, before that goes on with a watch of
// its own: one that is slow for a moment only need not.
const roomWait = 20 * time.Millisecond

// tell offers a record of the watch to the sinks. again says that it was offered before.
func (i *Informer) tell(ctx context.Context, rec *change.Record, again bool) error {
	images, err := i.images(rec)
	if err != nil {
		return err
	}
	base := before(rec, images)
	if err := i.shape(rec, &base); err != nil {
		return err
	}
	if !again {
		i.Observer.Received(rec)
	}
	i.comparer.meets(rec.Key)
	i.heard = rec.Received
	var waiting []*listener.Seat
	for _, seat := range i.seats {
		answer, err := i.offer(seat, rec, images)
		if err != nil {
			return err
		}
		switch answer {
		case listener.NoRoom:
			waiting = append(waiting, seat)
		case listener.NotOffered:
			i.leave(seat)
		}
	}
	return i.await(ctx, rec, images, waiting)
}

// offer offers the record to the sink. If the sink has another object of the name, it is told its delete first. The
// images are what the sinks were told last of the object.
func (i *Informer) offer(seat *listener.Seat, rec *change.Record, images change.Images) (listener.Answer, error) {
	base := before(rec, images).Version // of the image with which the record was shaped and compared, its Before
	answer, err := seat.Offer(rec, &i.way, images, base)
	if err == nil && answer == listener.Occupied {
		if err = i.tellReplaced(seat, rec, images); err == nil {
			answer, err = seat.Offer(rec, &i.way, images, base)
		}
	}
	if err != nil {
		err = fmt.Errorf("find out what sink %s knows of %s in %s: %w", seat.Name, rec.Key, i.stream, err)
	}
	return answer, err
}

// tellReplaced tells the sink the delete of an object whose name the record's object has now. It counts as found by a
// comparison of the namespace that is under way.
func (i *Informer) tellReplaced(seat *listener.Seat, rec *change.Record, images change.Images) error {
	of := checkpoint.Object{Resource: i.way.Resource, Key: rec.Key}
	asOf := checkpoint.Point{History: checkpoint.HistoryOf(rec.Epoch), Version: rec.ResourceVersion}.Below()
	had, err := seat.Newest(of)
	if err != nil {
		return err
	}
	gone := i.gone(of, had, asOf)
	for _, c := range seat.Comparisons(&i.way) {
		if c.Namespace == checkpoint.Others || c.Namespace == rec.Key.Namespace {
			gone.Snapshot = i.snapshot(seat, c)
		}
	}
	last := images.Of(seat.Name)
	if err := i.shape(gone, &last); err != nil {
		return err
	}
	i.Observer.Received(gone)
	seat.Tell(gone, listener.Deleted(of, i.way.Scope, had, asOf))
	return nil
}

// await offers the record to sinks whose queues were full. If there are other sinks, these wait only for roomWait.
// Those without room by then leave the watch, and go on from their positions with watches of their own.
func (i *Informer) await(
	ctx context.Context, rec *change.Record, images change.Images, waiting []*listener.Seat,
) error {
	var over <-chan time.Time
	for len(waiting) > 0 {
		if over == nil && len(waiting) < len(i.seats) {
			timer := time.NewTimer(roomWait)
			defer timer.Stop()
			over = timer.C
		}
		room := waiting[0].Room()
		answer, err := i.offer(waiting[0], rec, images)
		if err != nil {
			return err
		}
		if answer != listener.NoRoom {
			if answer == listener.NotOffered {
				i.leave(waiting[0])
			}
			waiting = waiting[1:]
			continue
		}
		select {
		case <-room:
		case <-over:
			for _, seat := range waiting {
				i.leave(seat)
				i.shared.Join(seat.Intake)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// leave takes the sink out of the watch. The caller has the turn.
func (i *Informer) leave(seat *listener.Seat) {
	i.seat(slices.DeleteFunc(slices.Clone(i.seats), func(other *listener.Seat) bool { return other == seat }))
}

// seat makes the sinks those of the watch. The caller has the turn.
func (i *Informer) seat(seats []*listener.Seat) {
	for _, seat := range i.seats {
		if !slices.Contains(seats, seat) {
			i.comparer.forget(seat)
			i.shared.left(seat)
		}
	}
	i.seats = seats
}

// bookmark moves the positions of all sinks to the version.
func (i *Informer) bookmark(version string) {
	rec := &change.Record{
		Stream: i.stream, Op: change.Bookmark, ResourceVersion: version, Received: time.Now(), Epoch: i.epoch,
	}
	for _, seat := range i.seats {
		if !seat.Bookmark(rec, &i.way) {
			i.leave(seat)
		}
	}
	i.heard = rec.Received
}

// brings notes that the watch has brought the version.
func (i *Informer) brings(version string) {
	if change.CompareVersions(version, i.brought) > 0 {
		i.brought = strings.Clone(version)
		i.seen.forget()
	}
}

// record makes the record of an object.
func (i *Informer) record(op change.Op, object *frame.Object) change.Record {
	rec := change.Record{
		Stream: i.stream, Op: op, Key: change.Key{Namespace: object.Namespace, Name: object.Name}, UID: object.UID,
		ResourceVersion: object.ResourceVersion, Object: object.JSON, Received: time.Now(), Epoch: i.epoch,
	}
	if op != change.Deleted { // Actor is who changed the object last, and not who deleted it
		rec.Actor = object.Actor
	}
	if object.Err != nil {
		markUnreadable(&rec)
	}
	return rec
}

// images are the images of the record's object: what the sinks were told last.
func (i *Informer) images(rec *change.Record) (change.Images, error) {
	if i.Kept == nil || !rec.Op.OfObject() {
		return nil, nil
	}
	images, err := i.Kept(i.stream, rec.Key)
	if err != nil {
		err = fmt.Errorf("look up the last form of %s in %s: %w", rec.Key, i.stream, err)
	}
	return images, err
}

// before is the newest image that is older than the record. A sink that was told something newer has the record.
func before(rec *change.Record, images change.Images) change.Image {
	at := slices.IndexFunc(images, func(image change.Image) bool {
		return change.CompareVersions(image.Version, rec.ResourceVersion) < 0
	})
	if at < 0 {
		return change.Image{}
	}
	return images[at]
}

// shape gives the record the form that all sinks share, with last as its Before. A Sync record changes nothing, so it
// has no Before. An object that the rules leave in lent memory is copied afterwards. They mostly make another object:
// to copy it first would take twice the memory, and half as much CPU time again (BenchmarkRules).
func (i *Informer) shape(rec *change.Record, last *change.Image) error {
	if rec.Keep = i.Kept != nil && rec.Op.OfObject(); rec.Keep && rec.Op != change.Sync && last.UID == rec.UID {
		rec.Before = last.Object
	}
	if i.Namespace != nil && rec.Op.OfObject() {
		if err := i.Namespace(rec); err != nil {
			return fmt.Errorf("look up the labels of namespace %s: %w", rec.Key.Namespace, err)
		}
	}
	if i.Shape != nil {
		i.Shape(rec)
		if len(i.lent) > 0 && len(rec.Object) > 0 && &rec.Object[0] == &i.lent[0] {
			rec.Object = i.lender.Keep(rec.Object)
		}
	}
	i.ignore(rec)
	if i.Involve == nil {
		return nil
	}
	if err := i.Involve(rec); err != nil {
		return fmt.Errorf("look up what %s is about: %w", rec.Key, err)
	}
	return nil
}

// shapeFor is shape for one sink. It returns the image that the sink was told last.
func (i *Informer) shapeFor(seat *listener.Seat, rec *change.Record) (last change.Image, err error) {
	images, err := i.images(rec)
	if err != nil {
		return last, err
	}
	last = images.Of(seat.Name)
	return last, i.shape(rec, &last)
}

// snapshot is the Snapshot of the comparison's records.
func (i *Informer) snapshot(seat *listener.Seat, c checkpoint.Comparison) *change.Snapshot {
	version, _, _ := strings.Cut(c.ID, ".")
	snapshot := &change.Snapshot{
		ID: c.ID, Reason: cmp.Or(c.Reason, change.Stale), ResourceVersion: version, Epoch: change.ClusterOf(i.epoch),
		Sinks: []string{seat.Name},
	}
	if scope := checkpoint.Scope(c.Namespace); scope != i.way.Scope {
		snapshot.Limits.Namespace = string(scope)
	}
	return snapshot
}

// gone is the record, before it is shaped, of a delete that no watch has brought. last is the sink's row.
func (i *Informer) gone(of checkpoint.Object, last checkpoint.Row, asOf checkpoint.Point) *change.Record {
	return &change.Record{
		Stream: i.stream, Op: change.Deleted, Key: of.Key, UID: last.UID, ResourceVersion: asOf.Version,
		Received: time.Now(), FinalStateUnknown: true, Epoch: i.epoch,
	}
}

// ignore marks an update without a difference that matters. Nothing is ignored while a sink is compared, since the list
// may leave the object to the watch.
func (i *Informer) ignore(rec *change.Record) {
	told := rec.Filtered || rec.Withheld != "" || rec.Object == nil || rec.Before == nil
	if i.Ignore != nil && !i.comparer.is && rec.Op == change.Updated && !told && i.Ignore(rec) {
		rec.Ignored = true
		i.Observer.Ignored(rec)
	}
	if i.BeforeHidden {
		rec.Before = nil
	}
}
