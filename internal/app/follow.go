package app

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// pause is the shortest time between two questions what the server serves, whoever asks for one.
const pause = time.Second

// setting is what a follower works with.
type setting struct {
	cfg     *config.Config
	cluster *current
	catalog *source.Catalog // what the server served when it was asked last
	store   *checkpoint.Store
	logger  *slog.Logger
}

// follower keeps the streams what the configuration chooses of what the server serves. One goroutine uses it, but for
// nudge.
type follower struct {
	setting
	telemetry *telemetry.Telemetry
	build     func(selected) (pipeline.Source, *source.Session, error)
	sessions  []*followed   // in the order in which they came
	nudged    chan struct{} // buffered 1: something may have come or gone
	warned    map[string]bool
	chosen    *choice // of the catalog
	stale     bool    // what sinks and operators see is not what is followed
	gaveBack  bool    // what the start needed
}

// followed is one stream of the pipeline.
type followed struct {
	selected
	session *source.Session
	missed  int  // catalogs in a row that told of its group and not of it
	ended   bool // it is not served any more, and the session sees to the rest
}

// newFollower makes a follower of what is streamed now.
func newFollower(s setting) *follower {
	return &follower{setting: s, nudged: make(chan struct{}, 1), warned: map[string]bool{}}
}

// nudge makes the follower ask soon. It returns at once, and may be called from any goroutine.
func (f *follower) nudge() {
	select {
	case f.nudged <- struct{}{}:
	default:
	}
}

// start makes the sources that are there from the start: those that are served, and the orphans, which wait until it is
// certain what became of their resources. From here on it tells the telemetry.
func (f *follower) start(t *telemetry.Telemetry) ([]pipeline.Source, error) {
	f.telemetry = t
	var sources []pipeline.Source
	for _, s := range f.cluster.streams() {
		made, session, err := f.build(s)
		if err != nil {
			return nil, err
		}
		if resource := s.stream.Resource; f.catalog.Serves(resource) {
			session.Serve(resource.Version)
		} else {
			f.telemetry.Waiting(s.stream, notServed(f.catalog, resource))
		}
		f.sessions = append(f.sessions, &followed{selected: s, session: session})
		sources = append(sources, made)
	}
	return sources, nil
}

func notServed(catalog *source.Catalog, resource change.Resource) string {
	if !catalog.Tells(resource.Group) {
		return "the API server cannot tell whether it serves " + resource.String()
	}
	return "the API server does not serve " + resource.String()
}

// runWith is run for a pipeline that the telemetry looks into.
func (f *follower) runWith(t *telemetry.Telemetry) func(context.Context, *pipeline.Roster) error {
	return func(ctx context.Context, roster *pipeline.Roster) error {
		t.Follow(roster.Unsaved)
		return f.run(ctx, roster)
	}
}

// run asks what is served until ctx ends.
func (f *follower) run(ctx context.Context, roster *pipeline.Roster) error {
	f.tell(f.catalog)
	next := pause
	for {
		if !sleep(ctx, pause, nil) || !sleep(ctx, next-pause, f.nudged) {
			return nil
		}
		next = f.look(ctx, roster)
		f.giveBack()
	}
}

// giveBack returns memory to the system, once, when all streams are watching. The lists before that need more than
// watches do, and the collector would keep it: it gives back only what is above its next goal, and quiet streams do not
// reach one.
func (f *follower) giveBack() {
	if !f.gaveBack && f.telemetry.Settled() {
		f.gaveBack = true
		debug.FreeOSMemory()
	}
}

// sleep is over after the time, or when somebody calls; it says whether ctx lives.
func sleep(ctx context.Context, d time.Duration, called <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-called:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// look asks once, and returns when to ask again. What the server does not tell stays as it is.
func (f *follower) look(ctx context.Context, roster *pipeline.Roster) time.Duration {
	interval := time.Duration(f.cfg.Discovery.Interval)
	catalog, err := f.cluster.discovery.Read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.telemetry.Discovered(nil, err)
		}
		return interval
	}
	f.clear(roster)
	f.choose(catalog)
	for _, s := range f.chosen.streams {
		f.see(s, roster)
	}
	if f.stale {
		f.publish()
	}
	f.tell(catalog)
	if f.doubt(ctx) {
		return min(pause, interval)
	}
	return interval
}

// choose chooses of the catalog, which is the same one while nothing has changed.
func (f *follower) choose(catalog *source.Catalog) {
	if f.chosen != nil && f.catalog == catalog {
		return
	}
	f.catalog, f.stale = catalog, true
	var errs []error
	f.chosen, errs = choose(catalog, f.cfg.Resources)
	f.warn(errs)
}

// warn says once what is wrong with an entry of the configuration now that other resources are served. A name that
// stands for nothing is on /statusz.
func (f *follower) warn(errs []error) {
	for _, err := range errs {
		var unknown *source.UnknownResourceError
		if err == nil || errors.As(err, &unknown) || f.warned[err.Error()] {
			continue
		}
		f.warned[err.Error()] = true
		f.logger.Warn("not streamed", "error", err)
	}
}

// clear drops the streams that are over and forgotten.
func (f *follower) clear(roster *pipeline.Roster) {
	before := len(f.sessions)
	f.sessions = slices.DeleteFunc(f.sessions, func(s *followed) bool { return s.ended && !roster.Holds(s.stream.String()) })
	f.stale = f.stale || len(f.sessions) != before
}

// see goes on with a stream that is served, in the version that is preferred now, or adds it.
func (f *follower) see(s selected, roster *pipeline.Roster) {
	for _, known := range f.sessions {
		if known.stream.String() == s.stream.String() {
			if !known.ended {
				known.session.Serve(s.stream.Resource.Version)
			}
			return
		}
	}
	if err := f.join(s, roster); err != nil {
		f.logger.Warn("stream not added; retrying", "resource", s.stream.String(), "error", err)
	}
}

func (f *follower) join(s selected, roster *pipeline.Roster) error {
	made, session, err := f.build(s)
	if err != nil {
		return err
	}
	session.Serve(s.stream.Resource.Version)
	run := made.Run
	made.Run = func(ctx context.Context, line *pipeline.Line) error {
		f.telemetry.Joined(s.stream)
		return run(ctx, line)
	}
	before := f.sessions
	f.sessions = append(f.sessions, &followed{selected: s, session: session})
	f.publish() // sinks are asked whether they want it
	if err := roster.Join(made); err != nil {
		f.sessions, f.stale = before, true
		return err
	}
	return nil
}

// publish makes the streams those that sinks and operators see.
func (f *follower) publish() {
	now := &choice{left: f.chosen.left}
	for _, s := range f.sessions {
		now.streams = append(now.streams, s.selected)
	}
	f.cluster.chosen.Store(now)
	f.stale = false
}

// doubt looks at the streams whose resource the catalog lacks, and ends those that are certainly not served: they are
// missing in two catalogs in a row that could tell of their group, and the server, which is ready, knows nothing at
// their path. It says whether there are some that have to be looked at again soon.
func (f *follower) doubt(ctx context.Context) (soon bool) {
	for _, s := range f.sessions {
		resource := s.stream.Resource
		if s.ended || f.catalog.Serves(resource) || !f.catalog.Tells(resource.Group) {
			s.missed = 0
			continue
		}
		if s.missed++; s.missed < 2 {
			soon = true
			continue
		}
		if f.cluster.discovery.IsGone(ctx, resource) {
			s.ended = true
			s.session.End()
		}
	}
	return soon
}

// tell shows what is left out and why, and what the server could not tell.
func (f *follower) tell(catalog *source.Catalog) {
	left := map[string]string{}
	for _, l := range f.cluster.chosen.Load().left {
		left[l.Name] = l.Reason
	}
	f.telemetry.Discovered(left, catalog.Incomplete())
}
