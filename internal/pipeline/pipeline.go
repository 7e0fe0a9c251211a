package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
)

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
	var set *StreamSet
	read := func(s Source) {
		sources.Go(guard(func() error { return r.read(sourceCtx, s, set) }))
	}
	set = r.newStreamSet(read)
	for _, s := range r.Sources {
		read(s)
	}
	if r.Follow != nil {
		sources.Go(guard(func() error { return r.Follow(sourceCtx, set) }))
	}
	if r.Beside != nil {
		sources.Go(guard(func() error { return r.Beside.Run(sourceCtx, &Inlet{r.line, r.listeners}) }))
	}
	for _, l := range r.listeners {
		if l.Gate != nil {
			sources.Go(guard(func() error { return r.openGates(sourceCtx, l) }))
		}
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
func (r *run) read(ctx context.Context, s Source, set *StreamSet) error {
	err := s.Run(ctx, &Inlet{r.line, r.listeners})
	if errors.Is(err, ErrOver) {
		set.leave(ctx, s)
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
	if r.Overtaken != nil {
		defer context.AfterFunc(r.Overtaken, func() { stopSinks(errStopped) })()
	}
	return listeners.Wait()
}
