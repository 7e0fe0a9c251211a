package source

import (
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Config is what a stream needs.
type Config struct {
	Client    *Client
	Stream    change.Stream
	Selection Selection
	Histories Histories
	// Kept, where set, is what each record's Before comes from; the records' objects are kept then. nil keeps none.
	Kept Kept
	// ClusterUID is the uid of namespace kube-system: a position of another one is of another epoch. "" is a server
	// that has no such namespace, and is not asked for it.
	ClusterUID string
	// BeforeHidden says that what is kept is for Shape and Ignore alone: records go on without their Before.
	BeforeHidden bool
	// Ignore, where set, says of an update in its shape, with its Before, that it need not be told. Like Shape.
	Ignore func(rec *change.Record) bool
	// Namespace, where set, notes on a record the labels of its object's namespace, before it is shaped. It may wait
	// for the server. After an error the record is read again.
	Namespace func(rec *change.Record) error
	// Involve, where set, adds to a record in its shape what is known of the object that it is about.
	Involve func(rec *change.Record) error
	// Shape, where set, decides what of each record goes on: it may mark it as filtered, and replace its Object, which
	// otherwise it leaves as it is. It keeps nothing of that. The watches of the stream call it beside each other.
	Shape func(rec *change.Record)
	// Keep says what is left in each object although it is cut by default.
	Keep     Keep
	Observer Observer
	// Gate bounds how many streams begin at once; streams that share a server share it. nil is no bound.
	Gate Gate
	// generation is that of the definition of a custom resource, as it was known last; nil or 0 is not known.
	generation *atomic.Int64
	// Rate bounds how fast full snapshots are read, as of NewRate; streams share it. nil is no bound.
	Rate *rate.Limiter
}

// Keep names what is cut out of objects by default.
type Keep struct {
	ManagedFields bool // metadata.managedFields
	LastApplied   bool // the annotation of kubectl apply
	Actor         bool `json:"-"` // of managedFields, who changed the object last; it is no part of the form
}

// Kept are the objects as the sinks were told of them last.
type Kept interface {
	// Images are those of the key's object in the stream.
	Images(stream *change.Stream, key change.Key) (change.Images, error)
}

// Histories name the histories of the clusters that were ever behind the name; *checkpoint.Store is one.
type Histories interface {
	// EpochOf is the name of the history, as of change.NewEpoch.
	EpochOf(history checkpoint.History) (string, error)
	// Met notes durably that the cluster of the uid is there, and returns the history that began when it was first.
	Met(uid string) (checkpoint.History, error)
}

// Observer is told what a stream does. Every field must be set; NopObserver has them all. The callbacks return at
// once.
type Observer struct {
	// Watching is told that a watch is open from the resourceVersion.
	Watching func(stream change.Stream, from string)
	// Failed is told of a failed list or watch, which is tried again.
	Failed func(stream change.Stream, err error)
	// Received is told of a record before it goes in line.
	Received func(rec *change.Record)
	// Ignored is told of an update that is not told to any sink, since nothing in it matters.
	Ignored func(rec *change.Record)
	// Comparing is told that a comparison starts; its counts are not known yet.
	Comparing func(stream change.Stream, snapshot *change.Snapshot)
	// Listed is told of each page of a comparison's list: its objects, and how many remain, -1 where the server does
	// not say, as with selectors (metav1.ListMeta.RemainingItemCount).
	Listed func(stream change.Stream, n int, remaining int64)
	// Abandoned is told that a full snapshot has ended that is not complete. Another one may follow.
	Abandoned func(stream change.Stream, snapshot *change.Snapshot)
	// Compared is told that a comparison is complete.
	Compared func(stream change.Stream, snapshot *change.Snapshot)
	// Unreadable is told of the record that goes in line for what cannot be read, and why: one of an object, which is
	// withheld, or a gap of the whole stream.
	Unreadable func(rec *change.Record, err error)
	// Corrected is told of each difference that a full snapshot finds and the watch should have told: drift.
	Corrected func(stream change.Stream, correction change.Correction)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Watching:   func(change.Stream, string) {},
		Failed:     func(change.Stream, error) {},
		Received:   func(*change.Record) {},
		Ignored:    func(*change.Record) {},
		Comparing:  func(change.Stream, *change.Snapshot) {},
		Listed:     func(change.Stream, int, int64) {},
		Abandoned:  func(change.Stream, *change.Snapshot) {},
		Compared:   func(change.Stream, *change.Snapshot) {},
		Unreadable: func(*change.Record, error) {},
		Corrected:  func(change.Stream, change.Correction) {},
	}
}

// tellUnreadable tells why the object of the record cannot be read, where it cannot.
func (o *Observer) tellUnreadable(rec *change.Record, err error) {
	if err != nil {
		o.Unreadable(rec, err)
	}
}
