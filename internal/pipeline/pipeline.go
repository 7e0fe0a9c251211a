package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// Config is what Run runs.
type Config struct {
	ClusterUID string // of namespace kube-system
	Sources    []Source
	Sinks      []delivery.Sink
	Store      *checkpoint.Store // opened by the caller and closed by the caller, after Run
	Images     *line.Images      // of the Store; nil where no source keeps objects
	// StopTimeout is how long a stop may take to deliver what is in the queues.
	StopTimeout time.Duration
	// OpenGrace is how long the start waits for sinks to open before anything is read; 0 is five seconds.
	OpenGrace time.Duration
	// MarkLag is how many records a sink's mark may lag before it carries the ids of those that keep it back; 0 is
	// 4096.
	MarkLag uint64
	// Requests are full snapshots that somebody asks for while the pipeline runs; nil is none. Each is answered.
	Requests <-chan Request
	// Replays are dead letters to be sent again; nil is none. Each is answered.
	Replays <-chan Replay
	// Reshape, where set, brings the object of a record that comes from disk into the form of today's rules. After an
	// error no sink may have the object (I9).
	Reshape func(rec *change.Record) error
	// Follow, where set, runs beside the sources and adds further ones. It returns when ctx ends; an error ends the
	// run.
	Follow   func(ctx context.Context, roster *Roster) error
	Observer Observer
}

// streams are those of the sources.
func (c *Config) streams() []change.Stream {
	streams := make([]change.Stream, len(c.Sources))
	for i, s := range c.Sources {
		streams[i] = s.Stream
	}
	return streams
}

// Source is one stream of records.
type Source struct {
	Stream change.Stream
	// Run pushes the stream's records into the line until ctx ends, and returns then; no goroutine of its own is
	// left. ErrOver ends the stream alone; any other error ends the whole run.
	Run func(ctx context.Context, inlet *Inlet) error
	// Request asks for full snapshots, each for one sink. It returns at once. What is asked for at once and for the
	// same reason may share a list.
	Request func(owed ...change.Owed)
	// Shape, where set, decides whether a record goes on that the pipeline makes itself: a delete without its object.
	// It may mark it as filtered. It must be safe for concurrent use.
	Shape func(rec *change.Record)
}

// LeftError says what a stop could not deliver within its deadline. Nothing of it is lost: the next start continues
// there.
type LeftError struct {
	Timeout time.Duration
	Queued  map[string]int // records by sink
}

func (e *LeftError) Error() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Queued)) {
		parts = append(parts, fmt.Sprintf("sink %s: %d records", name, e.Queued[name]))
	}
	return fmt.Sprintf("stop within %s: left undelivered: %s: the next start continues there", e.Timeout, strings.Join(parts, ", "))
}

// Run opens the sinks, then starts the sources, and delivers until ctx ends or something fails for good. Then it stops
// in the other order: the sources first, so that nothing new comes; the listeners when their queues are empty or the
// deadline is over; the committer last, so that everything delivered is saved (I7).
//
// It returns nil after a clean stop, a *LeftError after one that ran out of time, and the cause otherwise.
func Run(ctx context.Context, config Config) error {
	if len(config.Sinks) == 0 || len(config.Sinks) > checkpoint.MaxListeners {
		return fmt.Errorf("run with %d sinks: from 1 to %d are possible", len(config.Sinks), checkpoint.MaxListeners)
	}
	r := newRun(&config)
	var stopOpening context.CancelFunc
	r.opening, stopOpening = context.WithCancel(ctx)
	r.stopOpening = stopOpening
	err := r.open(r.opening)
	switch {
	case err == nil:
		err = r.deliver(ctx)
	case ctx.Err() != nil:
		err = nil // stopped while a sink was not there yet: nothing was in line
	}
	stopOpening()
	r.closeUnopened()
	return errors.Join(err, r.closeSinks(ctx))
}

// run is one life of the pipeline.
type run struct {
	*Config
	line      *line.Line
	listeners []*listener
	stops     *delivery.Stops
	resyncer  *resyncer
	saving    sync.Mutex // held while marks are saved, and no longer than one attempt takes
	oweMu     sync.Mutex // held while pending snapshots are noted and asked for

	opening     context.Context // of the sinks that are not open yet
	stopOpening context.CancelFunc
	sourceMu    sync.Mutex // guards Sources
}

// listener is one of a run, with what came of opening its sink.
type listener struct {
	*delivery.Listener
	opening chan openedSink // nil before that began
}

func newRun(config *Config) *run {
	r := &run{Config: config, stops: delivery.NewStops(len(config.Sinks))}
	common := delivery.Config{
		ClusterUID: config.ClusterUID, Streams: config.streams(), Store: config.Store, Reshape: config.Reshape, Observer: config.Observer.Observer,
		Stops: r.stops, Lost: r.oweLost, Shape: r.shape,
	}
	for i, s := range config.Sinks {
		r.listeners = append(r.listeners, &listener{Listener: delivery.New(i, s, &common)})
	}
	var members []line.Member
	for _, l := range r.listeners {
		members = append(members, l.Member())
	}
	r.line = line.New(members, line.Options{ClusterUID: config.ClusterUID, Images: config.Images, MarkLag: config.MarkLag})
	for i, l := range r.listeners {
		l.Seat = r.line.Seat(i)
	}
	r.resyncer = newResyncer(r)
	return r
}

// errStopped is the cause with which a layer's context ends when the layer is told to stop.
var errStopped = errors.New("stopped")

// deliver runs sources, listeners and committer. Each layer has a context of its own, so that they end in order; an
// error in any of them ends the sources, and with them all.
func (r *run) deliver(ctx context.Context) error {
	sourceCtx, stopSources := context.WithCancelCause(ctx)
	sinkCtx, stopSinks := context.WithCancelCause(context.WithoutCancel(ctx))
	commitCtx, stopCommits := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopSources(nil)
	defer stopSinks(nil)
	defer stopCommits(nil)

	guard := func(work func() error) func() error {
		return func() error {
			err := work()
			if err != nil {
				stopSources(err)
			}
			return err
		}
	}
	var sources, listeners, commits errgroup.Group
	commits.Go(guard(func() error { return r.newCommitter().run(commitCtx) }))
	for _, l := range r.listeners {
		listeners.Go(guard(func() error { return r.listen(sinkCtx, l) }))
	}
	var roster *Roster
	read := func(s Source) {
		sources.Go(guard(func() error { return r.read(sourceCtx, s, roster) }))
	}
	roster = newRoster(r, read)
	for _, s := range r.Sources {
		read(s)
	}
	if r.Follow != nil {
		sources.Go(guard(func() error { return r.Follow(sourceCtx, roster) }))
	}
	sources.Go(func() error { r.serveRequests(sourceCtx); return nil })
	sources.Go(func() error { r.serveReplays(sourceCtx); return nil })
	sources.Go(func() error { r.resyncer.run(sourceCtx); return nil })
	<-sourceCtx.Done()
	sourceErr := sources.Wait()
	listenErr := r.drain(&listeners, stopSinks)
	stopCommits(errStopped)
	return errors.Join(sourceErr, listenErr, commits.Wait(), r.left())
}

// listen delivers to one sink, whenever it is open.
func (r *run) listen(ctx context.Context, l *listener) error {
	for {
		if open, err := r.awaitOpen(l); err != nil || !open {
			return err
		}
		if err := l.Run(ctx); !errors.Is(err, delivery.ErrLeft) {
			return err
		}
		if err := l.ComeBack(); err != nil {
			return err
		}
		l.opening = make(chan openedSink, 1)
		l.opening <- openedSink{err: r.stops.Cause(l.Index)}
	}
}

// read runs the source until ctx ends or its stream is over.
func (r *run) read(ctx context.Context, s Source, roster *Roster) error {
	err := s.Run(ctx, &Inlet{r})
	if errors.Is(err, ErrOver) {
		roster.leave(ctx, s)
		return nil
	}
	return err
}

// drain lets the listeners finish their queues, and stops them when the deadline is over.
func (r *run) drain(listeners *errgroup.Group, stopSinks context.CancelCauseFunc) error {
	r.stopOpening()
	for _, l := range r.listeners {
		l.Finish()
	}
	deadline := time.AfterFunc(r.StopTimeout, func() { stopSinks(errStopped) })
	defer deadline.Stop()
	return listeners.Wait()
}

// left is what the listeners did not deliver, nil if that is nothing.
func (r *run) left() error {
	queued := map[string]int{}
	for _, l := range r.listeners {
		if n := l.Unsaved(); n > 0 {
			queued[l.Name] = n
		}
	}
	if len(queued) == 0 {
		return nil
	}
	return &LeftError{Timeout: r.StopTimeout, Queued: queued}
}

func (r *run) closeSinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.StopTimeout)
	defer cancel()
	var errs []error
	for _, l := range r.listeners {
		if err := l.Target.Close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close sink %s: %w", l.Name, err))
		}
	}
	return errors.Join(errs...)
}

// shape decides whether a record goes on that a listener makes, as the stream's source decides it of its own.
func (r *run) shape(rec *change.Record) {
	for _, s := range r.sources() {
		if s.Shape != nil && s.Stream.String() == rec.Stream.String() {
			s.Shape(rec)
		}
	}
}
