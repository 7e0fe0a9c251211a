package source

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

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
	// Scan yields the stream's entries behind a joined key, "" for all, in the order of those keys, as of one instant.
	Scan(stream, behind string) iter.Seq2[change.Entry, error]
}

// Images are the objects as they were delivered last.
type Images interface {
	// Last returns the object of the key, false where none is kept.
	Last(stream string, key change.Key) (change.Image, bool, error)
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

// Config is what a stream needs.
type Config struct {
	Client    *Client
	Stream    change.Stream
	Selection Selection
	Inventory Inventory
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
	// Shape, where set, decides what of each record goes on: it may replace its Object and mark it as filtered. One
	// goroutine at a time calls it.
	Shape func(rec *change.Record)
	// Keep says what is left in each object although it is cut by default.
	Keep     Keep
	Observer Observer
	// Gate bounds how many streams begin at once; streams that share a server share it. nil is no bound.
	Gate *Gate
	// Rate bounds how fast full snapshots are read; streams share it. nil is no bound.
	Rate *Rate
}

// Keep names what is cut out of objects by default.
type Keep struct {
	ManagedFields bool // metadata.managedFields
	LastApplied   bool // the annotation of kubectl apply
}

// Stream reads one resource, in one namespace or in all, and puts its changes in line. client-go's Reflector runs it:
// the loop of lists and watches, their time limits, 410, 429, very short watches and backoff are the Reflector's own
// rules. What is ours are the ListerWatcher, which lists only where the position cannot be continued, and the decoder.
type Stream struct {
	Config
	stream     change.Stream
	collection collection
	line       Line
	retries    *wait.Backoff
	listing    sync.WaitGroup // lists that the Reflector no longer waits for
	leave      func()         // the gate; nil outside of it

	// whose history the server speaks of, and what its answers are worth
	epoch    string // the history that is read, as of change.NewEpoch
	proof    proof
	trust    trust
	standing standing
	versions versions
	unsorted atomic.Bool           // the server's lists are not in the inventory's order
	refused  atomic.Pointer[error] // why the stream is not read any more; nil while it is

	// what the watches that have ended say
	silence silence
	endings endings

	schedule schedule
	goesOn   bool // a comparison that an earlier life began goes on, if nothing else comes before it

	turns  turns // guards the following, and proof, while there is a reader
	cursor cursor
	heard  time.Time // when the last record in line was read; zero in a life that had none yet
	begun  int64     // when the newest run began, in ms since 1970: each has its own
	recent recent    // what was told while a snapshot is read
	beside *reading  // nil while none is
}

// NewStream returns a stream that is not running.
func NewStream(config Config) *Stream {
	s := &Stream{
		Config: config, stream: config.Stream,
		collection: collection{config.Client, config.Stream, config.Selection, config.Keep},
		cursor:     newCursor(config.Saved),
		epoch:      config.ClusterUID,
		silence:    silence{least: minSilence},
		retries:    reflectorBackoff(),
		turns:      newTurns(),
	}
	s.versions.stream = &s.stream
	s.schedule = newSchedule(s.readSnapshots)
	sameCluster := change.ClusterOf(config.Saved.Epoch) == config.ClusterUID
	if sameCluster {
		s.epoch = config.Saved.Epoch
	}
	switch {
	case config.Saved.ResourceVersion == "" && !s.isEmpty(): // an initial snapshot whose version nobody saved
		s.schedule.add(change.Owed{Reason: change.Stale})
	case config.Saved.ResourceVersion == "":
		s.schedule.add(change.Owed{Reason: change.Initial})
	case !sameCluster:
		s.schedule.add(change.Owed{Reason: change.Epoch})
	case config.Saved.GoesOn(config.Selection.String()):
		s.goesOn = true
		s.schedule.add(change.Owed{Reason: reasonOf(config.Saved)})
	case config.Saved.Selector != config.Selection.String():
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
	return s
}

// reasonOf is the reason of the comparison that goes on at the position.
func reasonOf(position change.Position) change.Reason {
	if position.Initial() {
		return change.Initial
	}
	return change.Stale
}

// Request asks for full snapshots, each for one sink. It returns at once; a reader gives them beside the watch.
func (s *Stream) Request(owed ...change.Owed) { s.schedule.add(owed...) }

// Run reads until ctx ends. It starts the Reflector's goroutines and returns when they are gone.
func (s *Stream) Run(ctx context.Context, line Line) error {
	s.line = line
	// The Reflector logs each failure again and again; the observer hears of them instead.
	ctx = klog.NewContext(ctx, logr.Discard())
	discard := logr.Discard()
	reflector := cache.NewReflectorWithOptions(s.listerWatcher(), nil, nopStore{}, cache.ReflectorOptions{
		Logger:          &discard,
		Name:            s.stream.String(),
		TypeDescription: s.stream.String(),
		Backoff:         s.retries,
	})
	reflector.RunWithContext(ctx)
	s.listing.Wait()
	s.schedule.stopReader()
	s.leaveGate()
	return nil
}

// reflectorBackoff starts sooner than the Reflector's own, which waits from 0.8 s up to 60 s: from 0.1 s up to 30 s.
// The jitter makes each wait up to twice as long.
func reflectorBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// push gives the record its shape and puts it in line.
func (s *Stream) push(ctx context.Context, rec *change.Record) error {
	if err := s.shape(rec); err != nil {
		return err
	}
	return s.enter(ctx, rec)
}

// shape makes the record what it is in line.
func (s *Stream) shape(rec *change.Record) error {
	rec.Epoch = s.epoch
	if err := s.recall(rec); err != nil {
		return err
	}
	if s.Shape != nil {
		s.Shape(rec)
	}
	return nil
}

// enter tells the observer of the record and puts it in line.
func (s *Stream) enter(ctx context.Context, rec *change.Record) error {
	s.Observer.Received(rec)
	if err := s.line.Push(ctx, rec); err != nil {
		return fmt.Errorf("queue a record of %s: %w", s.stream, err)
	}
	if s.heard = rec.Received; s.heard.IsZero() { // a bookmark
		s.heard = time.Now()
	}
	s.recent.note(rec)
	return nil
}

// record makes the record of an object.
func (s *Stream) record(op change.Op, object *frame.Object) change.Record {
	rec := change.Record{
		Stream: &s.stream, Op: op,
		Key:             change.Key{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Object:          object.JSON,
		Received:        time.Now(),
	}
	if object.Err != nil {
		markUnreadable(&rec)
	}
	return rec
}
