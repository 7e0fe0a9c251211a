package source

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// output is what a stream pushes into. It gives each record its shape, puts it in line, and knows what was told.
type output struct {
	Config
	stream change.Stream
	line   Line
	epoch  string // the history that is read, as of change.NewEpoch

	turns  turns // guards the following while there is a reader
	cursor cursor
	proof  proof
	heard  time.Time // when the last record in line was read; zero in a life that had none yet
	loan   loan      // of the frame that is going in line
	recent recent    // what was told while a snapshot is read
	beside meeter    // the snapshot that is read; nil while none is
}

// meeter is a snapshot beside the watch.
type meeter interface {
	// meets prepares for a record of the watch. The caller has the turn.
	meets(ctx context.Context, rec *change.Record) error
}

// push gives the record its shape and puts it in line.
func (o *output) push(ctx context.Context, rec *change.Record) error {
	if err := o.shape(rec); err != nil {
		return err
	}
	return o.enter(ctx, rec)
}

// pushUnreadable puts a gap of the stream in line for what cannot be read.
func (o *output) pushUnreadable(ctx context.Context, gap change.Snapshot, why error) error {
	gap.ID = gap.ResourceVersion
	rec := &change.Record{
		Stream: &o.stream, Op: change.Gap, ResourceVersion: gap.ResourceVersion, Received: time.Now(), Snapshot: &gap,
		Remarks: &change.Remarks{Rejected: change.Unreadable},
	}
	o.Observer.tellUnreadable(rec, why)
	return o.push(ctx, rec)
}

// record makes the record of an object.
func (o *output) record(op change.Op, object *frame.Object) change.Record {
	rec := change.Record{
		Stream: &o.stream, Op: op,
		Key:             change.Key{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Object:          object.JSON,
		Received:        time.Now(),
	}
	if op != change.Deleted { // it says who changed the object last, and not who deleted it
		rec.Actor = object.Actor
	}
	if object.Err != nil {
		markUnreadable(&rec)
	}
	return rec
}

// shape makes the record what it is in line.
func (o *output) shape(rec *change.Record) error {
	rec.Epoch = o.epoch
	if err := o.recall(rec); err != nil {
		return err
	}
	if o.Shape != nil {
		o.Shape(rec)
		o.loan.shaped(rec)
	}
	o.ignore(rec)
	if o.Involve == nil {
		return nil
	}
	if err := o.Involve(rec); err != nil {
		return fmt.Errorf("look up what %s is about: %w", rec.Key, err)
	}
	return nil
}

// ignore withdraws an update that differs in nothing that matters from what was told last. It moves the position, and
// what is kept of the object stays (I2). While a snapshot is read nothing is ignored: a sink that it is for may be told
// of the object by the watch alone. Nor is what a snapshot finds: a sink's log may hold changes that lie in the gap and
// that the state does not know, so what is kept need not be what the sink was told last (I4).
func (o *output) ignore(rec *change.Record) {
	told := rec.Filtered || rec.Withheld != "" || rec.Object == nil || rec.Before == nil
	if o.Ignore != nil && o.beside == nil && rec.Op == change.Updated && !told && o.Ignore(rec) {
		rec.Filtered, rec.Object, rec.Before, rec.Actor = true, nil, nil, nil
		if o.Observer.Ignored != nil {
			o.Observer.Ignored(rec)
		}
	}
	if o.BeforeHidden {
		rec.Before = nil
	}
}

// recall gives the record the object as it was delivered last, and has its own kept. A Sync record changes nothing, so
// nothing was before it.
func (o *output) recall(rec *change.Record) error {
	if o.Images == nil || !rec.Op.OfObject() {
		return nil
	}
	rec.Keep = true
	if rec.Op == change.Sync {
		return nil
	}
	image, found, err := o.last(rec.Key, rec.UID)
	if found {
		rec.Before = image
	}
	return err
}

// last is what is kept of the object. One with another uid had the name before, and is another object.
func (o *output) last(key change.Key, uid string) (object []byte, found bool, err error) {
	image, found, err := o.Images.Last(o.stream.String(), key)
	if err != nil {
		return nil, false, fmt.Errorf("look up the last form of %s in %s: %w", key, o.stream, err)
	}
	return image.Object, found && image.UID == uid, nil
}

// enter tells the observer of the record and puts it in line.
func (o *output) enter(ctx context.Context, rec *change.Record) error {
	o.Observer.Received(rec)
	if err := o.line.Push(ctx, rec); err != nil {
		return fmt.Errorf("queue a record of %s: %w", o.stream, err)
	}
	if o.heard = rec.Received; o.heard.IsZero() { // a bookmark
		o.heard = time.Now()
	}
	o.recent.note(rec)
	return nil
}

// drain returns when everything that the stream pushed is delivered and saved.
func (o *output) drain(ctx context.Context) error {
	if err := o.line.Drain(ctx, o.stream); err != nil {
		return fmt.Errorf("drain %s: %w", o.stream, err)
	}
	return nil
}

// lookUp returns what the inventory has of the key.
func (o *output) lookUp(key change.Key) (entry change.Entry, found bool, err error) {
	if entry, found, err = o.Inventory.Lookup(o.stream.String(), key); err != nil {
		err = fmt.Errorf("look up %s in the inventory of %s: %w", key, o.stream, err)
	}
	return entry, found, err
}

// tell puts a record of the watch in line, beside a snapshot that may be read.
func (o *output) tell(ctx context.Context, rec *change.Record) error {
	if o.beside == nil {
		return o.push(ctx, rec)
	}
	defer o.turns.signal()
	rec.Beside = rec.Op == change.Updated
	if err := o.beside.meets(ctx, rec); err != nil {
		return err
	}
	if err := o.push(ctx, rec); err != nil || !o.recent.isFlooded() {
		return err
	}
	if err := o.drain(ctx); err != nil {
		return err
	}
	o.recent.flood()
	return nil
}

// isDelivered says whether an earlier life of the process delivered the record, as the inventory tells. It is asked
// only about records at the saved position, where the inventory is exact.
func (o *output) isDelivered(rec *change.Record) (bool, error) {
	entry, found, err := o.lookUp(rec.Key)
	if err != nil {
		return false, err
	}
	switch {
	case rec.Op == change.Deleted && found && entry.UID == rec.UID:
		return false, nil
	case rec.Op == change.Deleted && o.cursor.saved.Compared(): // perhaps it was never told that the object exists
		return o.Inventory.Ended(o.stream.String(), rec.ResourceVersion, rec.UID)
	case rec.Op == change.Deleted:
		return true, nil
	}
	return found && entry.UID == rec.UID && change.CompareVersions(entry.ResourceVersion, rec.ResourceVersion) >= 0, nil
}

// isEmpty says whether the sinks have no object of the stream. What cannot be read is left to those who read it next.
func (o *output) isEmpty() bool {
	for range o.Inventory.Scan(o.stream.String(), "") {
		return false
	}
	return true
}

// alone ends what the watch does for a snapshot. The caller has the turn, or there is no reader.
func (o *output) alone() {
	o.beside = nil
	o.recent.end()
}
