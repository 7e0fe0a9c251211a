package source

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Observer is told what a stream does. Every field must be set; NopObserver has them all. The callbacks return at
// once.
type Observer struct {
	// Watching is told that a watch is open from the resourceVersion.
	Watching func(stream change.Stream, from string)
	// Failed is told of a failed list or watch, which is tried again.
	Failed func(stream change.Stream, err error)
	// Received is told of a record before it goes in line.
	Received func(rec *change.Record)
	// Ignored, where set, is told of an update that is not told to any sink, since nothing in it matters.
	Ignored func(rec *change.Record)
	// Reconciling is told that a reconcile starts; its counts are not known yet.
	Reconciling func(stream change.Stream, snapshot *change.Snapshot)
	// Listed, where set, is told of each page of a reconcile's list: its objects, and how many remain, -1 where the
	// server does not say, as with selectors (metav1.ListMeta.RemainingItemCount).
	Listed func(stream change.Stream, n int, remaining int64)
	// Abandoned, where set, is told that a full snapshot has ended that is not complete. Another one may follow.
	Abandoned func(stream change.Stream, snapshot *change.Snapshot)
	// Reconciled is told that a reconcile is complete.
	Reconciled func(stream change.Stream, snapshot *change.Snapshot)
	// Unreadable, where set, is told of the record that goes in line for what cannot be read, and why: one of an
	// object, which is withheld, or a gap of the whole stream.
	Unreadable func(rec *change.Record, err error)
	// Corrected is told of each difference that a full snapshot finds and the watch should have told: drift.
	Corrected func(stream change.Stream, correction change.Correction)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Watching:    func(change.Stream, string) {},
		Failed:      func(change.Stream, error) {},
		Received:    func(*change.Record) {},
		Reconciling: func(change.Stream, *change.Snapshot) {},
		Reconciled:  func(change.Stream, *change.Snapshot) {},
		Corrected:   func(change.Stream, change.Correction) {},
	}
}

// tellListed tells of a page of n objects.
func (o *Observer) tellListed(stream change.Stream, n int, page *frame.ListMeta) {
	if o.Listed == nil {
		return
	}
	remaining := int64(-1)
	switch {
	case page.Continue == "":
		remaining = 0
	case page.RemainingItemCount != nil:
		remaining = *page.RemainingItemCount
	}
	o.Listed(stream, n, remaining)
}

// tellUnreadable tells why the object of the record cannot be read, where it cannot.
func (o *Observer) tellUnreadable(rec *change.Record, err error) {
	if err != nil && o.Unreadable != nil {
		o.Unreadable(rec, err)
	}
}
