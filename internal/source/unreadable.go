package source

import (
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
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
