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
	Images     *listener.Images  // of the Store; nil where no source keeps objects
	// StopTimeout is how long a stop may take to deliver what is in the queues.
	StopTimeout time.Duration
	// Overtaken, where set, ends when there is no use in delivering what is in the queues: another exporter does it. A
	// stop waits for nothing then.
	Overtaken context.Context
	// Prove is as of listener.Config.
	Prove func(ctx context.Context) error
	// Desk is where others ask something of the pipeline while it runs; nil is that nobody does.
	Desk Desk
	// Reshape, where set, brings the object of a record that comes from disk into the form of today's rules. After an
	// error no sink may have the object (I9).
	Reshape func(rec *change.Record) error
	// Follow, where set, runs beside the sources and adds further ones. It returns when ctx ends; an error ends the
	// run.
	Follow func(ctx context.Context, set *StreamSet) error
	// Beside, where set, pushes a stream that nobody can read again until ctx ends: its records have no positions, and
	// are of no object. A sink that is not open misses them. An error ends the run.
	Push     func(ctx context.Context, inlet *Inlet) error
	Observer Observer
}

// Source is one stream of the cluster, as those know it who read it: a source.SharedInformer.
type Source struct {
	Stream change.Stream
	// Run gives the stream to those of the sinks that are to be given it until ctx ends, and returns then; no goroutine
	// of its own is left. over is that the stream is: the sinks know that nothing of it exists.
	Run func(ctx context.Context, sinks []*listener.Intake) (over bool)
	// Join gives a sink the stream that was not to be given it before. It returns at once.
	Join func(sink *listener.Intake)
	// Ask asks for a full comparison of the sinks within the limits, which begins when a sink is given the stream. One
	// list serves those that are given it now. It returns at once.
	Ask func(sinks []*listener.Intake, reason change.Reason, limits change.Limits)
	// IsApart, where set, says whether the sink is read for with a watch of its own.
	IsApart func(sink *listener.Intake) bool
	// Withdraw makes what was asked for due no more.
	Withdraw func(sink *listener.Intake, limits change.Limits)
}

// Inlet is where records go in line that no watch brings.
type Inlet struct{ sinks []*listener.Intake }

// Push gives the record to its sink. It blocks while the sink's queue is full.
func (i *Inlet) Push(ctx context.Context, rec *change.Record) error {
	for _, sink := range i.sinks {
		if sink.Name == rec.Sink {
			return sink.Push(ctx, rec)
		}
	}
	return nil
}

// Drain returns when everything that was pushed is delivered or on disk, or with ctx's error.
func (i *Inlet) Drain(ctx context.Context) error {
	for _, sink := range i.sinks {
		if err := sink.Drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// StreamSet is how streams come while a pipeline runs; they go by themselves.
type StreamSet struct {
	run   *run
	ctx   context.Context
	group *errgroup.Group
}

// Observer is told what the pipeline does, and each of its sinks. Every field must be set; NopObserver has them all.
// The callbacks are called from the pipeline's goroutines, sometimes under its locks: they return at once and call
// nothing back.
type Observer struct {
	listener.Observer
	// Left is told that a stream is over and forgotten.
	Left func(stream change.Stream)
}

// NopObserver is an Observer that ignores everything.
func NopObserver() Observer {
	return Observer{Observer: listener.NopObserver(), Left: func(change.Stream) {}}
}

// Request is a full snapshot that somebody asks for.
type Request struct {
	Sink  string // "" is every sink that takes the stream
	Parts []Part // all are owed, or none
	// Heard is saved with the request, as in checkpoint.Batch.
	Heard map[string][]byte
}

// Part is a part of a Request.
type Part struct {
	Streams []string      // names as of change.Stream.String; none is all
	Limits  change.Limits // of what is listed, as an API server takes them
}

// Desk is where others ask something of a pipeline. What they ask waits until its sinks are open, and is refused with
// ErrNotStreaming where that takes long. It has no buffer: what is taken is done before the pipeline ends.
type Desk chan func(context.Context, *run)

// RefusedError is a question that cannot be answered as it was asked. Its text names what could be asked.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// run is one life of the pipeline.
type run struct {
	*Config
	books     *listener.Books
	listeners []*listener.Listener
	stops     *listener.Stops
	soon, now sink.Bell // the committer has work

	mu      sync.Mutex // guards the following
	sources []Source
	held    map[string]bool // streams that there are, or that are just being forgotten
	owing   owing
}

// owing are the full snapshots that somebody has asked for, and that are saved until their ends are. The sinks are
// asked for each as soon as they are given the stream.
type owing struct {
	wake sink.Bell

	mu    sync.Mutex       // guards the following, and one change of what is owed at a time
	asked map[string]asked // by ID
}

// asked is what a sink was asked for: a comparison is that which was begun after it.
type asked struct {
	generation uint64
	after      int64         // the number of the comparison that was begun last
	seat       listener.Seat // what was asked for in an earlier opening of the sink is not under way any more
}

// all are the streams at this moment.
func (r *run) all() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sources)
}

// Views are how the sinks stand with the streams that they take.
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
