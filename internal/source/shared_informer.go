package source

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// SharedInformer is the life of one resource's stream, as client-go's is that of a resource: one Informer that sinks
// share, and others for those that lag behind it. Serve, Define and End tell it what the server's discovery says. They
// return at once, and may be called from any goroutine.
//
// A resource has the same objects in all of its versions, so a stream goes on in another version where it was.
type SharedInformer struct {
	common
	config Config

	// guarded by mu
	version   string             // of the resource, to be read; "" until it is known
	over      bool               // the resource is gone
	at        string             // the resourceVersion before which it was deleted
	stop      context.CancelFunc // ends the reading of version
	informers []*Informer
}

// NewSharedInformer returns one that waits for Run and Serve.
func NewSharedInformer(config Config) *SharedInformer {
	config.generation = new(atomic.Int64)
	if config.Rate == nil {
		config.Rate = NewRate(0)
	}
	s := &SharedInformer{config: config, stop: func() {}}
	s.histories, s.woken, s.given = config.Histories, make(chan struct{}, 1), map[*listener.Intake]*listener.Seat{}
	return s
}

// Serve says that the resource is served, and has to be read in the version.
func (s *SharedInformer) Serve(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != version {
		s.version = version
		s.stop()
	}
}

// Define says of which generation the resource's definition is. It counts only if that is not known yet.
func (s *SharedInformer) Define(generation int64) { s.config.generation.CompareAndSwap(0, generation) }

// End says that the resource's definition was deleted before the resourceVersion. The sinks are told so, and then the
// stream is over.
func (s *SharedInformer) End(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.at = true, version
	s.stop()
}

// Run reads for the sinks until ctx ends. It returns over if the resource is gone and the sinks know it.
func (s *SharedInformer) Run(ctx context.Context, sinks []*listener.Intake) (over bool) {
	for ctx.Err() == nil {
		now, stop := context.WithCancel(ctx)
		s.mu.Lock()
		s.stop = stop
		version, over, at := s.version, s.over, s.at
		s.mu.Unlock()
		switch {
		case over:
			stop()
			return s.retire(ctx, sinks, at)
		case version == "":
			<-now.Done()
		default:
			s.readVersion(now, version, sinks)
		}
		stop()
	}
	return false
}

// readVersion reads the stream in the version until ctx ends.
func (s *SharedInformer) readVersion(ctx context.Context, version string, sinks []*listener.Intake) {
	stream := s.config.Stream
	stream.Resource.Version = version
	var informers sync.WaitGroup
	defer informers.Wait()
	later := func(sink *listener.Intake) bool { return !sink.IsOffered(&stream) }
	first := slices.DeleteFunc(slices.Clone(sinks), later)
	s.mu.Lock()
	s.arrived = slices.DeleteFunc(s.arrived, func(sink *listener.Intake) bool { return slices.Contains(first, sink) })
	s.mu.Unlock()
	start := func(sinks []*listener.Intake, apart bool) {
		if i := s.newInformer(&stream, sinks, apart); i != nil {
			informers.Go(func() { s.run(ctx, i) })
		}
	}
	start(first, false)
	for {
		for _, sink := range s.arrivals() {
			if sink.IsOffered(&stream) && !s.has(sink) {
				start([]*listener.Intake{sink}, true)
			}
		}
		select {
		case <-s.woken:
		case <-ctx.Done():
			return
		}
	}
}

// run runs the Informer. A sink that is apart is given the stream when half of its queue is free; it need not have got
// everything from disk by then.
func (s *SharedInformer) run(ctx context.Context, i *Informer) {
	defer s.remove(i)
	if i.alone != nil {
		if err := i.seats[0].HalfFree(ctx); err != nil {
			return
		}
	}
	i.run(ctx)
}

// newInformer makes an Informer for those of the sinks that are offered everything, nil if none is.
func (s *SharedInformer) newInformer(stream *change.Stream, sinks []*listener.Intake, apart bool) *Informer {
	i := &Informer{
		Config: &s.config, shared: &s.common, stream: stream, turns: newTurns(), silence: silence{least: minSilence},
		retries: reflectorBackoff(), end: func() {}, fresh: map[string]bool{}, seen: sightings{},
		way: listener.Way{
			Resource: stream.Resource.String(), Scope: checkpoint.ScopeOf(stream), Selection: s.config.Selection.String(),
		},
	}
	i.origin.collection = collection{s.config.Client, *stream, s.config.Selection, s.config.Keep}
	i.comparer.due = make(chan struct{}, 1)
	i.tryJoin, i.askAgain = func() { s.tryJoin(i) }, func(a ask) { s.ask(a) }
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sink := range sinks {
		if seat, offered := sink.Seat(); offered {
			i.seats = append(i.seats, seat)
			s.given[sink] = seat
		}
	}
	if len(i.seats) == 0 {
		return nil
	}
	if apart {
		i.alone = sinks[0]
	}
	s.informers = append(s.informers, i)
	return i
}

func (s *SharedInformer) remove(i *Informer) {
	i.turns.take()
	i.seat(nil)
	left := i.comparer.chosen
	i.turns.give()
	s.mu.Lock()
	s.informers = slices.DeleteFunc(s.informers, func(other *Informer) bool { return other == i })
	poke(s.woken)
	s.mu.Unlock()
	s.ask(left...)
}

// tryJoin lets sinks of the Informer go on with the common watch, if they have all that this has brought (rule join).
// The caller has the Informer's turn.
func (s *SharedInformer) tryJoin(i *Informer) {
	s.mu.Lock()
	if len(s.informers) < 2 || s.informers[0] == i || i.comparer.current != nil {
		s.mu.Unlock()
		return
	}
	common := s.informers[0]
	s.mu.Unlock()
	select {
	case common.turns.taken <- struct{}{}:
	default:
		return // another time
	}
	defer common.turns.give()
	if common.turns.open == 0 || common.epoch != i.epoch || len(common.seats) == 0 {
		return
	}
	brought := checkpoint.Point{History: checkpoint.HistoryOf(common.epoch), Version: common.brought}
	for _, seat := range slices.Clone(i.seats) {
		at := seat.Known(&i.way).From
		same := listener.MayJoin(at, brought) || i.brought == common.brought && i.seen.isLike(common.seen)
		if same && len(seat.Comparisons(&i.way)) == 0 {
			i.seats = slices.DeleteFunc(slices.Clone(i.seats), func(other *listener.Seat) bool { return other == seat })
			common.seats = append(common.seats, seat)
		}
	}
	if len(i.seats) == 0 {
		i.end()
	}
}

// Ask asks for a comparison of the sinks within the limits. It returns at once; for each sink it begins when that is
// given the stream.
func (s *SharedInformer) Ask(sinks []*listener.Intake, reason change.Reason, limits change.Limits) {
	var all []ask
	for _, sink := range sinks {
		all = append(all, ask{sink, reason, limits})
	}
	s.ask(all...)
}

// ask wakes the Informers, of which those that give the sinks the stream take what is asked for.
func (s *SharedInformer) ask(all ...ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, all...)
	for _, i := range s.informers {
		poke(i.comparer.due)
	}
}

// Withdraw drops the sink's full snapshots within the limits. They have no SnapshotEnd.
func (s *SharedInformer) Withdraw(sink *listener.Intake, limits change.Limits) {
	s.Ask([]*listener.Intake{sink}, "", limits)
}

// retire tells the sinks that the definition of the resource was deleted before the version: everything that they have
// of it is gone. For a sink that has something, the watch has not brought everything, and nobody knows the rest: that
// is a gap (I4). Another one is told only the end, or nothing if it was never given the stream. No sink waits for
// another.
func (s *SharedInformer) retire(ctx context.Context, sinks []*listener.Intake, version string) (over bool) {
	stream := s.config.Stream
	var told sync.WaitGroup
	var broken atomic.Bool
	for _, sink := range sinks {
		if !sink.Takes(&stream) {
			continue
		}
		i := s.newInformer(&stream, []*listener.Intake{sink}, false)
		if i == nil {
			continue
		}
		told.Go(func() {
			defer s.remove(i)
			if err := i.retireFor(ctx, i.seats[0], version); err != nil {
				broken.Store(true)
			}
		})
	}
	told.Wait()
	return !broken.Load()
}

// IsApart says whether the sink is given the stream by a watch that is not the common one.
func (s *SharedInformer) IsApart(sink *listener.Intake) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, i := range s.informers {
		if at > 0 && i.alone == sink {
			return true
		}
	}
	return false
}
