package change

import "time"

// Record is one delta on its way. It is immutable once it has its Seq: every listener's queue holds the same pointer.
//
// Key, UID, ResourceVersion and Object share memory that the decoder copied from the wire once.
type Record struct {
	// Seq orders the records of all streams of this process, from 1. It is given by fifo.Numberer.
	Seq    uint64
	Stream *Stream
	Op     Op
	Key    Key
	UID    string
	// ResourceVersion of the object; for a bookmark, a snapshot or a gap that of the stream. A delete found by a
	// reconcile carries the last version that was delivered, since the delete's own is not known.
	ResourceVersion string
	// Object is the object's JSON as the API server wrote it, less what is cut by configuration. nil where there is
	// none: a bookmark, a snapshot's frame, a delete whose last state was not seen.
	Object []byte
	// Before is the object as it was delivered last, in the form in which it was; nil where that is not kept, or there
	// is none. Sync records have none.
	Before []byte
	// Changed are the pointers of what differs from Before, a list of JSON, where that is asked for; ChangedCut says
	// that there are more. Both are made for each sink.
	Changed    []byte
	ChangedCut bool
	// Patch, where not nil, goes out in the place of Object: a JSON Patch (RFC 6902) that makes Object of what the sink
	// has of the object, its version Base. Both are made for each sink.
	Patch []byte
	Base  string
	// Actor are the field managers that changed the object last, a list of JSON; nil where that is not asked for, or
	// not known.
	Actor []byte
	// Involved is what is known of the object that an Event is about, an object of JSON as package involved makes it;
	// nil where that is not asked for.
	Involved []byte
	// Received is when the exporter read the record.
	Received time.Time
	// FinalStateUnknown marks a delete that no watch saw (cache.DeletedFinalStateUnknown).
	FinalStateUnknown bool
	// Aside marks a record that one listener has put in: it was in no queue, and nobody waits for it.
	Aside bool
	// Snapshot is the reconcile that the record belongs to, nil for a record of the watch.
	Snapshot *Snapshot
	// Sink names the only sink that the record is for; "" is all.
	Sink string
	// Epoch is the history that the record was read from, as of NewEpoch, "" for the first one of the cluster that the
	// exporter started with.
	Epoch string
	// Filtered marks a record that no sink takes, since the user does not want it. It moves the position.
	Filtered bool
	// Ignored marks an update that differs in nothing that matters from what was told last: it goes to a sink that was
	// told nothing of the object.
	Ignored bool
	// Remarks are what was done to the record for one sink, nil for nothing.
	Remarks *Remarks
	// Replay is set on a dead letter that is sent again to Sink. Such a record stays in memory: what it is waited for
	// by has no other form.
	Replay *Replay
	// Beside says of an update that it came while a snapshot was read: it may be the first that a sink hears of the
	// object.
	Beside bool
	// Withheld, where not "", is why no sink may have the record: a gap stands in its place, and its object, where
	// there is one, is for a person to look at.
	Withheld string
	// Keep says that the object as it is delivered is kept, to be the Before of the next record.
	Keep bool
	// Form is, of a record that comes from disk, by which rules its object was cut and redacted; "" is not known.
	Form string
	// Last marks the last record of a snapshot that speaks of an object.
	Last bool
	// Given, where not "", is the version up to which the listener that has the record was given everything of the
	// stream, once it has it.
	Given string
}

// Unreadable is why a record is withheld, or the reason of a gap of a stream, where what the API server sent cannot be
// read. Such a record has no object.
const Unreadable = "unreadable"

// overhead approximates what a Record costs in memory beside its object: the struct, its slot in queue and tracker.
const overhead = 384

// Size is the memory in bytes that the record holds while it is queued.
func (r *Record) Size() int {
	return overhead + len(r.Object) + len(r.Before) + len(r.Actor) + len(r.Involved)
}

// Keeps says what is kept of the object after the record, nil for nothing; false leaves what was. What no sink was
// given is not kept, and a record for one sink says nothing of the others.
func (r *Record) Keeps() (object []byte, changed bool) {
	switch {
	case !r.Keep || !r.Op.OfObject() || r.Sink != "" || r.Ignored:
		return nil, false
	case r.Op == Deleted:
		return nil, true
	case r.Withheld != "":
		return nil, false
	}
	return r.Object, r.Object != nil
}
