package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// openGrace is how long the start waits for the first attempts to open the sinks: those that are open by then share one
// watch and one list. A sink that fails, or takes longer, is opened while the others deliver.
const openGrace = 5 * time.Second

// Run opens the sinks, then starts the sources, and delivers until ctx ends or something fails for good. Then it stops
// in this order: the sources, so that nothing new comes; the listeners, when their queues are empty or the deadline is
// over; the committer, so that everything delivered is saved (I7).
//
// It returns nil after a clean stop, a *UndeliveredError after one that ran out of time, and the cause otherwise.
func Run(ctx context.Context, config Config) error {
	if len(config.Sinks) == 0 {
		return errors.New("run without a sink: configure one")
	}
	r := &run{
		Config: &config, stops: listener.NewStops(len(config.Sinks)), soon: sink.NewBell(), now: sink.NewBell(),
		sources: config.Sources, held: map[string]bool{}, owing: owing{wake: sink.NewBell()},
	}
	for _, s := range config.Sources {
		r.held[s.Stream.String()] = true
	}
	r.books = listener.NewBooks(config.Store, config.Observer.Observer, config.Images)
	common := listener.Config{
		ClusterUID: config.ClusterUID, Store: config.Store, Streams: r.streams, Reshape: config.Reshape, Observer: config.Observer.Observer,
		Stops: r.stops, Prove: config.Prove, Work: r.work, Serve: r.serve,
	}
	for i := range config.Sinks {
		l, err := listener.New(i, &config.Sinks[i], &common, r.books)
		if err != nil {
			return err
		}
		r.listeners = append(r.listeners, l)
	}
	err := r.deliver(ctx)
	return errors.Join(err, r.closeSinks(ctx))
}

// work wakes the committer.
func (r *run) work(now bool) {
	if now {
		r.now.Ring()
	} else {
		r.soon.Ring()
	}
}

func (r *run) streams() (streams []*change.Stream) {
	for _, s := range r.all() {
		streams = append(streams, &s.Stream)
	}
	return streams
}

// serve lets the sink join every stream that it takes. Before that, it asks for the snapshots that are owed to it.
func (r *run) serve(l *listener.Intake) {
	if err := r.askOwed(); err != nil {
		r.Observer.CommitFailed(err)
	}
	r.join(l)
}

func (r *run) join(l *listener.Intake) {
	for _, s := range r.all() {
		s.Join(l)
	}
}

func (r *run) intakes() []*listener.Intake {
	intakes := make([]*listener.Intake, len(r.listeners))
	for i, l := range r.listeners {
		intakes[i] = &l.Intake
	}
	return intakes
}

// errStopped is the cause with which a layer's context ends when the layer has to stop.
var errStopped = errors.New("stopped")

// deliver runs sources, listeners and committer. Each layer has a context of its own, so that they end in order. An
// error in any of them ends the sources, and then the others.
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
	commits.Go(guard(func() error { return r.commit(commitCtx) }))
	for _, l := range r.listeners {
		listeners.Go(guard(func() error { return l.Run(sourceCtx, sinkCtx) }))
	}
	r.awaitOpen(sourceCtx)
	set := &StreamSet{run: r, ctx: sourceCtx, group: &sources}
	if sourceCtx.Err() == nil {
		r.read(sourceCtx, set, guard)
	}
	<-sourceCtx.Done()
	sourceErr := sources.Wait()
	for _, l := range r.listeners {
		l.Finish()
	}
	deadline := time.AfterFunc(r.StopTimeout, func() { stopSinks(errStopped) })
	defer deadline.Stop()
	if r.Overtaken != nil {
		defer context.AfterFunc(r.Overtaken, func() { stopSinks(errStopped) })()
	}
	listenErr := listeners.Wait()
	stopCommits(errStopped)
	return errors.Join(sourceErr, listenErr, commits.Wait(), r.left())
}

// read starts the sources, and the goroutines that run beside them.
func (r *run) read(ctx context.Context, set *StreamSet, guard func(func() error) func() error) {
	for _, s := range r.all() {
		set.start(s)
	}
	if r.Follow != nil {
		set.group.Go(guard(func() error { return r.Follow(ctx, set) }))
	}
	if r.Push != nil {
		set.group.Go(guard(func() error { return r.Push(ctx, &Inlet{r.intakes()}) }))
	}
	for _, l := range r.listeners {
		if l.Gate != nil {
			set.group.Go(func() error { r.openGate(ctx, l); return nil })
		}
		if l.Resync > 0 {
			set.group.Go(func() error { r.resync(ctx, l); return nil })
		}
	}
	set.group.Go(func() error { r.answer(ctx, set.group); return nil })
	set.group.Go(guard(func() error { return r.oweAll(ctx) }))
}

// answer does what is asked at the desk until ctx ends. Each question has a goroutine, since it may wait for room in a
// queue.
func (r *run) answer(ctx context.Context, group *errgroup.Group) {
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-r.Desk:
			group.Go(func() error { do(ctx, r); return nil })
		}
	}
}

// awaitOpen returns when the first attempts to open all sinks are over, or after openGrace.
func (r *run) awaitOpen(ctx context.Context) {
	timer := time.NewTimer(openGrace)
	defer timer.Stop()
	for _, l := range r.listeners {
		select {
		case <-l.Opened():
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// openGate lets the sink join its streams again whenever its format has other schemas.
func (r *run) openGate(ctx context.Context, l *listener.Listener) {
	for {
		changed := l.Gate.Changed()
		r.join(&l.Intake)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// commitWait is how long a commit waits for more to be delivered: otherwise each of 120 changes a second would cost a
// synced write.
const commitWait = 250 * time.Millisecond

// commit saves what is delivered, in batches, until ctx ends. Before it returns, it makes one attempt to save the rest.
func (r *run) commit(ctx context.Context) error {
	var due <-chan time.Time
	overdue := time.NewTicker(listener.OverdueWait) // nothing else may happen while a sink is away
	defer overdue.Stop()
	for {
		select {
		case <-r.soon:
			if due == nil {
				due = time.After(commitWait)
			}
			continue
		case <-r.now:
		case <-due:
		case <-overdue.C:
		case <-ctx.Done():
			return r.save(ctx)
		}
		due = nil
		if err := r.save(ctx); err != nil {
			return err
		}
	}
}

// save saves what is delivered, and forgets the owed snapshots whose ends are saved with it.
func (r *run) save(ctx context.Context) error {
	err := r.books.Save(ctx)
	for _, one := range r.books.Completed() {
		r.pay(&one)
	}
	return err
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

// UndeliveredError says what a stop could not deliver within its deadline. Nothing is lost: the next start continues
// there.
type UndeliveredError struct {
	Timeout time.Duration
	Queued  map[string]int // records by sink
}

func (e *UndeliveredError) Error() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Queued)) {
		parts = append(parts, fmt.Sprintf("sink %s: %d records", name, e.Queued[name]))
	}
	return fmt.Sprintf("stop within %s: left undelivered: %s: the next start continues there", e.Timeout, strings.Join(parts, ", "))
}

// left is an *UndeliveredError of what the listeners did not deliver, nil if that is nothing.
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
	return &UndeliveredError{Timeout: r.StopTimeout, Queued: queued}
}

// Holds says whether there is a stream of the name, even one that is being forgotten.
func (set *StreamSet) Holds(stream string) bool {
	set.run.mu.Lock()
	defer set.run.mu.Unlock()
	return set.run.held[stream]
}

// Join adds a stream and starts it. An error leaves everything as it was.
func (set *StreamSet) Join(s Source) error {
	name := s.Stream.String()
	set.run.mu.Lock()
	if set.run.held[name] {
		set.run.mu.Unlock()
		return fmt.Errorf("add stream %s: it is there already", name)
	}
	set.run.held[name] = true
	set.run.sources = append(set.run.sources, s)
	set.run.mu.Unlock()
	set.start(s)
	set.run.owing.wake.Ring()
	return nil
}

func (set *StreamSet) start(s Source) {
	r := set.run
	set.group.Go(func() error {
		if !s.Run(set.ctx, r.intakes()) {
			return nil
		}
		r.mu.Lock()
		r.sources = slices.DeleteFunc(r.sources, func(other Source) bool { return other.Stream.String() == s.Stream.String() })
		delete(r.held, s.Stream.String())
		r.mu.Unlock()
		r.Observer.Left(s.Stream)
		return nil
	})
}
