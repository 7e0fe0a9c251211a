package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Config is what Run runs.
type Config struct {
	ClusterUID string // of namespace kube-system
	Sources    []Source
	Sinks      []listener.Sink
	Store      *checkpoint.Store // opened by the caller and closed by the caller, after Run
	Images     *listener.Images  // of the Store; nil if no source keeps objects
	// StopTimeout is how long a stop may take to deliver what is in the queues.
	StopTimeout time.Duration
	// Overtaken, if set, ends when another exporter delivers what is in the queues. A stop does not wait for them then.
	Overtaken context.Context
	// Prove is as of listener.Config.
	Prove func(ctx context.Context) error
	// Desk is where others ask something of the pipeline while it runs; nil if nobody does.
	Desk Desk
	// Reshape, if set, brings the object of a record from disk into the form of today's rules. After an error no sink
	// may have the object (I9).
	Reshape func(rec *change.Record) error
	// Follow, if set, runs beside the sources and adds further ones. It returns when ctx ends; an error ends the run.
	Follow func(ctx context.Context, set *StreamSet) error
	// Push, if set, pushes a stream that cannot be read again, until ctx ends: its records have no position. A sink
	// that is offered nothing misses them. An error ends the run.
	Push     func(ctx context.Context, inlet *Inlet) error
	Observer Observer
}

// Source is one stream of the cluster, with the methods of its source.SharedInformer.
type Source struct {
	Stream change.Stream
	// Run gives the stream to the sinks that take it, until ctx ends, and leaves no goroutine behind. over says that
	// the stream has ended, and the sinks know that nothing of it exists.
	Run func(ctx context.Context, sinks []*listener.Intake) (over bool)
	// Join lets a sink be given the stream from its position on. It returns at once.
	Join func(sink *listener.Intake)
	// Ask asks for a full comparison of the sinks within the limits. It begins for each sink as soon as that is given
	// the stream; sinks of one watch share a list. It returns at once.
	Ask func(sinks []*listener.Intake, reason change.Reason, limits change.Limits)
	// IsApart, if set, says whether the sink has a watch of its own.
	IsApart func(sink *listener.Intake) bool
	// Withdraw ends what was asked for.
	Withdraw func(sink *listener.Intake, limits change.Limits)
}

// Inlet is where records enter that no watch brings.
type Inlet struct{ sinks []*listener.Intake }

// Push queues the record for its sink. It blocks while the sink's queue is full.
func (i *Inlet) Push(ctx context.Context, rec *change.Record) error {
	for _, sink := range i.sinks {
		if sink.Name == rec.Sink {
			return sink.Push(ctx, rec)
		}
	}
	return nil
}

// Drain returns when everything that was pushed is delivered or on disk, or its sink has left, or with ctx's error.
func (i *Inlet) Drain(ctx context.Context) error {
	for _, sink := range i.sinks {
		if err := sink.Drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// StreamSet adds streams to a pipeline that runs. They leave it by themselves.
type StreamSet struct {
	run   *run
	ctx   context.Context
	group *errgroup.Group
}

// Observer is told what the pipeline and its sinks do. Every field must be set; NopObserver has them all. The callbacks
// are called from the pipeline's goroutines, sometimes under its locks: they return at once and call nothing back.
type Observer struct {
	listener.Observer
	// Left is told that a stream is over and forgotten.
	Left func(stream change.Stream)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{Observer: listener.NopObserver(), Left: func(change.Stream) {}}
}

// Request is a request for full snapshots.
type Request struct {
	Sink  string // "" is every sink that takes the stream
	Parts []Part // all of them are owed, or none
	// Heard is saved with the request, as in checkpoint.Batch.
	Heard map[string][]byte
}

// Part is a part of a Request.
type Part struct {
	Streams []string      // names as of change.Stream.String; none is all
	Limits  change.Limits // which objects are listed
}

// Desk is where others ask something of a pipeline. A question waits until the sinks are open, and is refused with
// ErrNotStreaming if that takes long. The channel has no buffer: what is taken is done before the pipeline ends.
type Desk chan func(context.Context, *run)

// RefusedError says why an order cannot be followed. Its text names what could be asked for.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// run is one life of the pipeline.
type run struct {
	*Config
	books     *listener.Books
	listeners []*listener.Listener
	stops     *listener.Stops
	soon, now sink.Bell // wake the committer

	mu      sync.Mutex // guards the following
	sources []Source
	held    map[string]bool // the streams that there are, and those that are being forgotten
	owing   owing
}

// owing are the full snapshots that somebody has asked for. They are saved until their ends are. Each is asked for as
// soon as its sink is given the stream.
type owing struct {
	wake sink.Bell

	mu    sync.Mutex       // guards the following, and changes of what is owed
	asked map[string]asked // by ID
}

// asked is a snapshot that was asked for: a comparison with a higher number may be it.
type asked struct {
	generation uint64
	after      int64         // the number of the comparison that had begun last
	seat       listener.Seat // of the sink then: after another opening the snapshot has to be asked for again
}

// all are the streams that there are now.
func (r *run) all() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sources)
}

// Views are the states of the sinks and of the streams that they take.
func (set *StreamSet) Views() *listener.Views {
	views := &listener.Views{Streams: map[string][]listener.View{}, Marks: map[string]string{}}
	sources := set.run.all()
	for _, l := range set.run.listeners {
		oldest := l.Oldest()
		for at := range sources {
			s := &sources[at]
			if !l.Takes(&s.Stream) {
				continue
			}
			view, name := l.View(&s.Stream), s.Stream.String()
			if view.Oldest = oldest[name]; view.Waits == "" && s.IsApart != nil && s.IsApart(&l.Intake) {
				view.Waits = listener.ForOthers
			}
			views.Streams[name] = append(views.Streams[name], view)
		}
		views.Marks[l.Name] = l.SavedMark()
	}
	return views
}
