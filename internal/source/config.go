package source

import (
	"sync/atomic"

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
	// Involve, where set, adds to a record in its shape what is known of the object that it is about.
	Involve func(rec *change.Record) error
	// Shape, where set, decides what of each record goes on: it may mark it as filtered, and replace its Object, which
	// otherwise it leaves as it is. It keeps nothing of that. One goroutine at a time calls it.
	Shape func(rec *change.Record)
	// Keep says what is left in each object although it is cut by default.
	Keep     Keep
	Observer Observer
	// Gate bounds how many streams begin at once; streams that share a server share it. nil is no bound.
	Gate *Gate
	// generation is that of the definition of a custom resource, as it was known last; nil or 0 is not known.
	generation *atomic.Int64
	// Rate bounds how fast full snapshots are read; streams share it. nil is no bound.
	Rate *Rate
}

// Keep names what is cut out of objects by default.
type Keep struct {
	ManagedFields bool // metadata.managedFields
	LastApplied   bool // the annotation of kubectl apply
	Actor         bool `json:"-"` // of managedFields, who changed the object last; it is no part of the form
}

// Kept are the objects as they were told last.
type Kept interface {
	// Last returns the object of the key, false where none is kept.
	Last(stream string, key change.Key) (change.Image, bool, error)
	// Note keeps what the record tells of its object.
	Note(rec *change.Record)
}

// Histories name the histories of the clusters that were ever behind the name; *checkpoint.Store is one.
type Histories interface {
	// EpochOf is the name of the history, as of change.NewEpoch.
	EpochOf(history checkpoint.History) (string, error)
	// Met notes durably that the cluster of the uid is there, and returns the history that began when it was first.
	Met(uid string) (checkpoint.History, error)
}
