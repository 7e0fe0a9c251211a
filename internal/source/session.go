package source

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Session is the life of one resource's stream: the times in which it is read, each by a Stream of its own, those in
// which nobody can tell whether it is still served, and its end. Whoever follows the server's discovery tells it:
// Serve and End return at once, and may be called from any goroutine.
//
// A resource is the same in each of its versions, so a stream goes on in another version where it was.
type Session struct {
	config Config
	load   func() (Saved, error)

	mu      sync.Mutex         // guards the following
	version string             // to read; "" is to wait
	over    bool               // the resource is gone, as of
	at      string             // this resourceVersion
	reading *Stream            // nil while nothing is read
	stop    context.CancelFunc // of what goes on
	pending []change.Owed      // asked for while nothing was read
	returns []change.Owed      // that begin with a gap, and were asked for

	withdrawn []change.Owed
}

// Saved is what a stream goes on from.
type Saved struct {
	Position change.Position
	Owed     []change.Owed // full snapshots
}

// NewSession returns a session that is not running, and waits until it is told what is served. load reads the saved
// state of the stream whenever it is read anew; config's Saved is not used.
func NewSession(config Config, load func() (Saved, error)) *Session {
	config.generation = new(atomic.Int64)
	return &Session{config: config, load: load, stop: func() {}}
}

// Serve says that the resource is served, and to be read in the version.
func (s *Session) Serve(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != version {
		s.version = version
		s.stop()
	}
}

// Define says of which generation the resource's definition is, where that is not known yet.
func (s *Session) Define(generation int64) { s.config.generation.CompareAndSwap(0, generation) }

// End says that the resource's definition was deleted before the version. The session tells the sinks so, and is over
// then.
func (s *Session) End(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.at = true, version
	s.stop()
}

// Request asks for full snapshots, each for one sink, as Stream.Request does.
func (s *Session) Request(owed ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wants(owed)
	for _, o := range owed {
		if o.Reason.Gap() {
			s.returns = append(slices.DeleteFunc(s.returns, o.Same), o)
		}
	}
	if s.reading != nil {
		s.reading.Request(owed...)
		return
	}
	s.pending = append(s.pending, owed...)
}

// Withdraw is Stream.Withdraw, and makes them due no more for later streams of the session either, until they are
// asked for again.
func (s *Session) Withdraw(owed ...change.Owed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) }
	s.withdrawn = append(slices.DeleteFunc(s.withdrawn, dropped), owed...)
	s.pending = slices.DeleteFunc(s.pending, dropped)
	if s.reading != nil {
		s.reading.Withdraw(owed...)
	}
}

// Due is Stream.Due of the stream that is read, and what waits for it.
func (s *Session) Due() []change.Owed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		return s.reading.Due()
	}
	return slices.Clone(s.pending)
}

// Run reads until ctx ends, or the resource is gone and the sinks know it: over is true then.
func (s *Session) Run(ctx context.Context, line Line) (over bool, err error) {
	for ctx.Err() == nil {
		now, stop := context.WithCancel(ctx)
		err := s.turn(ctx, now, stop, line)
		stop()
		if s.isOver() && err == nil {
			stream, err := s.stream(ctx)
			if err == nil {
				err = stream.retire(ctx, line, s.at)
			}
			return err == nil, ignoreEnd(ctx, err)
		}
		if err != nil {
			return false, ignoreEnd(ctx, err)
		}
	}
	return false, nil
}

// ignoreEnd is nil where the error is only the end of ctx.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// turn reads, or waits, until something else is to be done. stop ends now, which is within ctx.
func (s *Session) turn(ctx, now context.Context, stop context.CancelFunc, line Line) error {
	s.mu.Lock()
	s.stop = stop
	version, over := s.version, s.over
	s.mu.Unlock()
	switch {
	case over:
		return nil
	case version == "":
		<-now.Done()
		return nil
	}
	stream, err := s.stream(ctx)
	if err != nil {
		return err
	}
	s.hold(stream)
	err = stream.Run(now, line)
	s.mu.Lock()
	s.reading = nil
	s.mu.Unlock()
	if err != nil || ctx.Err() != nil {
		return err
	}
	return line.Drain(ctx, s.config.Stream) // the next one goes on from what is saved
}

// stream makes a stream at the saved position.
func (s *Session) stream(ctx context.Context) (*Stream, error) {
	saved, err := s.load()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.version != "" {
		s.config.Stream.Resource.Version = s.version
	}
	s.pending = append(s.pending, s.due(saved.Owed)...)
	s.mu.Unlock()
	config, uid := s.config, s.config.ClusterUID
	config.Saved = saved.Position
	if uid != "" && saved.Position.Epoch != uid {
		// It may have become another one while this process ran. Where nobody answers, the stream will ask.
		if now, err := config.Client.clusterUID(ctx, time.Time{}); err == nil {
			uid = now
		}
	}
	return streamOf(config, uid), nil
}

// due are those of the saved pending snapshots that may be paid now. A sink that is absent, or whose log has lost
// records, comes back when it is asked for, and not before: nobody would hear the gap, or nobody knows yet of what the
// log has lost the deletes. The caller holds mu.
func (s *Session) due(saved []change.Owed) (due []change.Owed) {
	for _, o := range saved {
		if !o.Reason.Gap() {
			if !s.isWithdrawn(o) {
				due = append(due, o)
			}
			continue
		}
		at := slices.IndexFunc(s.returns, func(r change.Owed) bool { return r.Same(o) && r.Generation == o.Generation })
		if at >= 0 {
			due = append(due, s.returns[at])
		}
	}
	return due
}

// hold makes the stream the one that is asked for snapshots.
func (s *Session) hold(stream *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = stream
	if len(s.pending) > 0 {
		stream.Request(s.pending...)
		s.pending = nil
	}
}

// isWithdrawn says whether what was saved is withdrawn since; the caller holds mu.
func (s *Session) isWithdrawn(saved change.Owed) bool {
	return slices.ContainsFunc(s.withdrawn, func(o change.Owed) bool { return o.Same(saved) && o.Generation == saved.Generation })
}

// wants notes that the owed is asked for; the caller holds mu.
func (s *Session) wants(owed []change.Owed) {
	s.withdrawn = slices.DeleteFunc(s.withdrawn, func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) })
}
