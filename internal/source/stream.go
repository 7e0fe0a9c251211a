package source

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// Line is where a stream puts its records.
type Line interface {
	// Push puts the record in line. It blocks while a queue is full, and returns an error only when ctx ends.
	Push(ctx context.Context, rec *change.Record) error
	// Drain returns when everything that the stream pushed is delivered and saved, or when ctx ends.
	Drain(ctx context.Context, stream change.Stream) error
	// Ghosts are the stream's objects that a sink's own log holds and the inventory does not know.
	Ghosts(stream change.Stream) []change.Ghost
}

// Inventory is what the sinks have, as the saved state knows it.
type Inventory interface {
	// Lookup returns the entry of one object, false where there is none.
	Lookup(stream string, key change.Key) (change.Entry, bool, error)
	// Scan yields the stream's entries in the order of their joined keys, as of one instant.
	Scan(stream string) iter.Seq2[change.Entry, error]
}

// Observer is told what a stream does. Every field must be set; NopObserver has them all. The callbacks return at once.
type Observer struct {
	// Watching is told that a watch is open from the resourceVersion.
	Watching func(stream change.Stream, from string)
	// Failed is told of a failed list or watch, which is tried again.
	Failed func(stream change.Stream, err error)
	// Received is told of a record before it goes in line.
	Received func(rec *change.Record)
	// Reconciling is told that a reconcile starts; its counts are not known yet.
	Reconciling func(stream change.Stream, snapshot *change.Snapshot)
	// Reconciled is told that a reconcile is complete.
	Reconciled func(stream change.Stream, snapshot *change.Snapshot)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{
		Watching:    func(change.Stream, string) {},
		Failed:      func(change.Stream, error) {},
		Received:    func(*change.Record) {},
		Reconciling: func(change.Stream, *change.Snapshot) {},
		Reconciled:  func(change.Stream, *change.Snapshot) {},
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
	// ClusterUID is the uid of namespace kube-system: a saved position of another one is of another epoch.
	ClusterUID string
	Observer   Observer
}

// Stream reads one resource, in one namespace or in all, and puts its changes in line. client-go's Reflector runs it:
// the loop of lists and watches, their time limits, 410, 429, very short watches and backoff are the Reflector's own
// rules. What is ours are the ListerWatcher, which lists only where the position cannot be continued, and the decoder.
type Stream struct {
	Config
	stream    change.Stream
	selection Selection
	line      Line
	cursor    cursor
	unsorted  bool // the server's lists are not in the inventory's order

	listing sync.WaitGroup // lists that the Reflector no longer waits for

	mu        sync.Mutex // guards the following
	due       []request  // reconciles to run before the next watch, oldest first
	running   bool       // the first of them is being run
	stopWatch context.CancelFunc
	emptyRuns int // watches in a row that ended at once with nothing
}

// request asks for a reconcile.
type request struct {
	reason change.Reason
	// sink is the one that a full snapshot is for; "" is all.
	sink string
}

// full says whether unchanged objects are sent, too.
func (r request) full() bool {
	switch r.reason {
	case change.Resync, change.Requested, change.NewSink, change.Lost:
		return true
	}
	return false
}

// NewStream returns a stream that is not running.
func NewStream(config Config) *Stream {
	s := &Stream{
		Config: config, stream: config.Stream, selection: config.Selection,
		cursor:    newCursor(config.Saved),
		stopWatch: func() {},
	}
	switch {
	case config.Saved.ResourceVersion == "":
		s.due = []request{{reason: change.Initial}}
	case config.Saved.Epoch != config.ClusterUID:
		s.due = []request{{reason: change.Epoch}}
	case config.Saved.Selector != config.Selection.String():
		s.due = []request{{reason: change.Stale}}
	}
	return s
}

// Request asks for a full snapshot for the sink, or for all with "". It returns at once; the watch ends and continues
// where it was after the snapshot.
func (s *Stream) Request(reason change.Reason, sink string) { s.enqueue(request{reason, sink}) }

// enqueue adds a reconcile, unless the same one waits already, and ends the present watch. One that is running does not
// count: what is asked for now may concern what it has passed.
func (s *Stream) enqueue(r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.due
	if s.running {
		waiting = waiting[1:]
	}
	if slices.Contains(waiting, r) {
		return
	}
	s.due = append(s.due, r)
	s.stopWatch()
}

// isDue says whether a reconcile waits or runs.
func (s *Stream) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due) > 0
}

// begin returns the reconcile that is due first. It stays on the list until done says that it succeeded.
func (s *Stream) begin() (request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return request{}, false
	}
	s.running = true
	return s.due[0], true
}

// done ends the reconcile that begin returned, and takes it off the list unless it failed.
func (s *Stream) done(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if !failed {
		s.due = s.due[1:]
	}
}

// Run reads until ctx ends. It starts the Reflector's goroutines and returns when they are gone.
func (s *Stream) Run(ctx context.Context, line Line) error {
	s.line = line
	// The Reflector logs each failure again and again; the observer hears of them instead.
	ctx = klog.NewContext(ctx, logr.Discard())
	discard := logr.Discard()
	reflector := cache.NewReflectorWithOptions(s.listerWatcher(), nil, deltaStore{ctx, s}, cache.ReflectorOptions{
		Logger:          &discard,
		Name:            s.stream.String(),
		TypeDescription: s.stream.String(),
		Backoff:         reflectorBackoff(),
	})
	reflector.RunWithContext(ctx)
	s.listing.Wait()
	return nil
}

// reflectorBackoff starts sooner than the Reflector's own 0.8 s, and ends at the same 30 s.
func reflectorBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 30 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// frameOptions says how the stream's objects are cut from the wire.
func (s *Stream) frameOptions() frame.Options {
	return frame.Options{Kind: s.stream.Resource.Kind, APIVersion: s.stream.Resource.APIVersion()}
}

// push tells the observer and puts the record in line.
func (s *Stream) push(ctx context.Context, rec *change.Record) error {
	s.Observer.Received(rec)
	if err := s.line.Push(ctx, rec); err != nil {
		return fmt.Errorf("put a record of %s in line: %w", s.stream, err)
	}
	return nil
}

// record makes the record of an object.
func (s *Stream) record(op change.Op, object *frame.Object) change.Record {
	return change.Record{
		Stream: &s.stream, Op: op,
		Key:             change.Key{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Object:          object.JSON,
		Received:        time.Now(),
	}
}
