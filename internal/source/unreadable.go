package source

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// An object that cannot be read ends no stream: a gap stands in its place, where its key is known for the key (I4).
// Where nobody knows whose it is, a watch is opened again, since it may have been broken on its way, and the second
// time at the same position a reconcile is due; in a list it is a gap of the stream.

// errNoName is why an item is nobody's that can be read.
var errNoName = errors.New("an item of the list has no name")

// markUnreadable withholds the record of an object that cannot be read. A delete needs no object.
func markUnreadable(rec *change.Record) {
	if rec.Op == change.Deleted {
		rec.FinalStateUnknown = true
		return
	}
	rec.Withheld = change.Unreadable
}

// tellUnreadable tells the observer why the object of the record cannot be read, where it cannot.
func (s *Stream) tellUnreadable(rec *change.Record, err error) {
	if err != nil && s.Observer.Unreadable != nil {
		s.Observer.Unreadable(rec, err)
	}
}

// noteBroken makes a reconcile due where what cannot be read stands at the position for the second time.
func (s *Stream) noteBroken(err error) {
	if s.endings.broke(s.cursor.position.ResourceVersion, frame.IsUnreadable(err)) {
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
}

// listedNobody is listed for an item of which not even the name can be told. What the inventory has at its place in the
// list may be it, so nothing there is told to be gone.
func (r *run) listedNobody(ctx context.Context, why error) error {
	r.inventory.passUnknown()
	if r.nobody++; r.nobody > 1 {
		return nil
	}
	version := r.snapshot.ResourceVersion
	rec := &change.Record{
		Stream: &r.stream, Op: change.Gap, ResourceVersion: version, Received: time.Now(), Marks: &change.Marks{Rejected: change.Unreadable},
		Snapshot: &change.Snapshot{ID: version, Reason: change.Policy, From: r.snapshot.From, ResourceVersion: version},
	}
	r.tellUnreadable(rec, why)
	return r.push(ctx, rec)
}
