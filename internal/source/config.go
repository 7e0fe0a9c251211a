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
	// Kept, if set, gives an object as the sinks were told of it last, which each record's Before comes from; the
	// records' objects are kept then. nil keeps none.
	Kept func(stream *change.Stream, key change.Key) (change.Images, error)
	// ClusterUID is the uid of namespace kube-system: a position of another one is of another epoch. "" if the server
	// has no such namespace; then it is not asked for it.
	ClusterUID string
	// BeforeHidden says that Before is only for Shape and Ignore: records go on without it.
	BeforeHidden bool
	// Ignore, if set, says whether an update, in its shape and with its Before, need not be told. It is called like
	// Shape.
	Ignore func(rec *change.Record) bool
	// Namespace, if set, notes on a record the labels of its object's namespace, before it is shaped. It may wait for
	// the server. After an error the record is read again.
	Namespace func(rec *change.Record) error
	// Involve, if set, sets the Involved of a record, in its shape.
	Involve func(rec *change.Record) error
	// Shape, if set, applies rules to each record: it may mark it as filtered, and replace its Object, but not change
	// the bytes or keep them. The watches of the stream call it concurrently.
	Shape func(rec *change.Record)
	// Keep says what stays in each object although it is cut by default.
	Keep     Keep
	Observer Observer
	// Gate bounds how many streams begin at once; the streams of a server share it. nil is no bound.
	Gate Gate
	// generation is the last known generation of a custom resource's definition; nil or 0 if not known.
	generation *atomic.Int64
	// Rate bounds how fast full snapshots are read, as of NewRate; streams share it. nil is no bound.
	Rate *rate.Limiter
}

// Keep names what is cut out of objects by default.
type Keep struct {
	ManagedFields bool // metadata.managedFields
	LastApplied   bool // the annotation of kubectl apply
	Actor         bool `json:"-"` // who changed the object last, by managedFields; no part of the form
}

// Histories know the histories of the clusters that ever had the name; *checkpoint.Store is one.
type Histories interface {
	// EpochOf is the epoch of the history, as change.NewEpoch names it.
	EpochOf(history checkpoint.History) (string, error)
	// Met notes durably that the cluster of the uid was met, and returns the history that began when it was met first.
	Met(uid string) (checkpoint.History, error)
}

// Observer is told what a stream does. Every field must be set; NopObserver has them all. The callbacks return at
// once.
type Observer struct {
	// Watching is told that a watch is open from the resourceVersion.
	Watching func(stream change.Stream, from string)
	// Failed is told of a failed list or watch, which is tried again.
	Failed func(stream change.Stream, err error)
	// Received is told of a record before it is queued.
	Received func(rec *change.Record)
	// Ignored is told of an update that sinks need not get, since nothing in it matters.
	Ignored func(rec *change.Record)
	// Comparing is told that a comparison starts; its counts are not known yet.
	Comparing func(stream change.Stream, snapshot *change.Snapshot)
	// Listed is told of each page of a comparison's list: its objects, and how many remain, -1 where the server does
	// not say, as with selectors (metav1.ListMeta.RemainingItemCount).
	Listed func(stream change.Stream, n int, remaining int64)
	// Abandoned is told that a full snapshot has ended before it was complete. Another one may follow.
	Abandoned func(stream change.Stream, snapshot *change.Snapshot)
	// Compared is told that a comparison is complete.
	Compared func(stream change.Stream, snapshot *change.Snapshot)
	// Unreadable is told of the record that is queued for what cannot be read, and why: one of an object, which is
	// withheld, or a gap of the whole stream.
	Unreadable func(rec *change.Record, err error)
	// Corrected is told of each difference that a full snapshot finds and the watch should have brought: drift.
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

// tellUnreadable calls Unreadable if err is not nil.
func (o *Observer) tellUnreadable(rec *change.Record, err error) {
	if err != nil {
		o.Unreadable(rec, err)
	}
}
