package source

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Config is what a stream needs.
type Config struct {
	Client    *Client
	Stream    change.Stream
	Selection Selection
	Inventory Inventory
	Histories Histories
	// Kept, where set, is what each record's Before comes from; the records' objects are kept then. nil keeps none.
	Kept Kept
	// Saved is the position to continue from; the zero value is a fresh state.
	Saved change.Position
	// ClusterUID is the uid of namespace kube-system: a position of another one is of another epoch. "" is a server
	// that has no such namespace, and is not asked for it.
	ClusterUID string
	// Meet, where set, is told of a cluster that is another one than ClusterUID, or another history of it, before any
	// record of it goes in line. An error of it is worth another attempt.
	Meet func(uid string) error
	// Images, where set, is what each record's Before comes from; the records' objects are kept then. nil keeps none.
	Images Images
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

// Line is where a stream puts its records, and what it asks about those who take them.
type Line interface {
	Way
	Takers
}

// Way is the way of records to the sinks.
type Way interface {
	// Push puts the record in line. It blocks while a queue is full, and returns an error only when ctx ends.
	Push(ctx context.Context, rec *change.Record) error
	// Drain returns when everything that the stream pushed is delivered and saved, or when ctx ends.
	Drain(ctx context.Context, stream change.Stream) error
}

// Takers are the sinks.
type Takers interface {
	// Pace returns when fewer than so many bytes wait for the sink, or with "" for each that takes the stream and is
	// well, or when ctx ends, and says whether it had to wait.
	Pace(ctx context.Context, stream *change.Stream, sink string, most int) (waited bool, err error)
	// SinkOnly are the stream's objects that a sink's own log holds and the inventory does not know.
	SinkOnly(stream change.Stream) []change.SinkOnly
}

// Inventory is what the sinks have, as the saved state knows it.
type Inventory interface {
	// Lookup returns the entry of one object, false where there is none.
	Lookup(stream string, key change.Key) (change.Entry, bool, error)
	// Ended says whether the delete of the object at the version was delivered, of a stream that is being compared.
	Ended(stream, version, uid string) (bool, error)
	// Scan yields the stream's entries after a joined key, "" for all, in the order of those keys, as of one instant.
	Scan(stream, behind string) iter.Seq2[change.Entry, error]
}

// Images are the objects as they were delivered last.
type Images interface {
	// Last returns the object of the key, false where none is kept.
	Last(stream string, key change.Key) (change.Image, bool, error)
}

// Kept are the objects as they were told last.
type Kept interface {
	Images
	// Note keeps what the record tells of its object.
	Note(rec *change.Record)
}
