package selection

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Adopt adds to what is chosen the streams that the state knows and the configuration chooses, and whose resource is
// not served now: it may come back, or the sinks must be told that its objects are gone.
func (f *Follower) Adopt() error {
	known, err := f.Store.KnownStreams()
	if err != nil {
		return err
	}
	var unserved []Selected
	for _, stream := range known {
		if f.Catalog.Serves(stream.Resource) {
			continue
		}
		for _, s := range f.chooseSaved(stream) {
			if !slices.ContainsFunc(unserved, func(other Selected) bool { return other.Stream == s.Stream }) {
				unserved = append(unserved, s)
			}
		}
	}
	chosen, more := f.Current.Chosen.Load(), &Choice{Streams: unserved}
	more.part()
	f.Current.Chosen.Store(&Choice{
		Streams: slices.Concat(chosen.Streams, more.Streams), Others: slices.Concat(chosen.Others, more.Others), Left: chosen.Left,
	})
	return nil
}

// chooseSaved finds what the configuration chooses of a stream which is not served: its name first, then a wildcard.
// Where other namespaces are configured now, it is the streams that have a part of it.
func (f *Follower) chooseSaved(stream change.Stream) []Selected {
	for _, wildcards := range []bool{false, true} {
		for i := range f.Config.Resources {
			configured := &f.Config.Resources[i]
			named := strings.EqualFold(configured.Name, stream.Resource.String())
			covered := source.Covers(configured.Name, stream.Resource) && !configured.Excludes(stream.Resource.String())
			if !wildcards && !named || wildcards && !covered {
				continue
			}
			apart := func(s Selected) bool { return !overlap(s.Stream.Namespace, stream.Namespace) }
			entries := config.EntriesOf(f.Config.Resources, configured.Name)
			if chosen := slices.DeleteFunc(streamsOf(stream.Resource, entries), apart); len(chosen) > 0 {
				return chosen
			}
		}
	}
	return nil
}

// pause is the shortest time between two questions what the server serves, whoever asks for one.
const pause = time.Second

// lacking is how many catalogs in a row, a second apart, lack a resource before its definition is looked for. A server
// that is some seconds behind etcd still has to tell what its watches know.
const lacking = 5

// Follower keeps the streams what the configuration chooses of what the server serves. One goroutine uses it, but for
// Nudge. What is exported is set before Start, but for Telemetry.
type Follower struct {
	Config  *config.Config
	Current *Current
	Catalog *source.Catalog // what the server served when it was asked last
	Store   *checkpoint.Store
	Logger  *slog.Logger
	Nudged  sink.Bell // something may have come or gone
	// Admits says whether the resource may be followed, which another task may have still.
	Admits    func(resource string) bool
	Telemetry *telemetry.Telemetry
	Build     func(Selected) (pipeline.Source, *source.SharedInformer, error)

	following []*followed // in the order in which they came
	warned    map[string]bool
	chosen    *Choice // of the catalog
	over      []change.Stream
	stale     bool // what sinks and operators see is not what is followed

	defined   *source.Catalog // the one whose definitions are known
	undefined error           // why they are not
}

// followed is one stream of the lines.
type followed struct {
	Selected
	source     pipeline.Source // of one that has joined others
	informer   *source.SharedInformer
	generation int64 // of its custom resource's definition; 0 is none that is known
	missed     int   // catalogs in a row that told of its group and not of it
	ended      bool  // its definition is gone, and the session sees to the rest
}

// Nudge makes the follower ask soon. It returns at once, and may be called from any goroutine.
func (f *Follower) Nudge() { f.Nudged.Ring() }

// Start makes the sources that are there from the start: those that are served, and the unserved, which wait until it
// is certain what became of their resources. From here on it tells the telemetry.
func (f *Follower) Start(t *telemetry.Telemetry) ([]pipeline.Source, error) {
	f.Telemetry, f.warned = t, map[string]bool{}
	var sources []pipeline.Source
	for _, s := range f.Current.Streams() {
		made, informer, err := f.Build(s)
		if err != nil {
			return nil, err
		}
		if resource := s.Stream.Resource; f.Catalog.Serves(resource) {
			informer.Serve(resource.Version)
		} else {
			why := "the API server does not serve "
			if !f.Catalog.Tells(resource.Group) {
				why = "the API server cannot tell whether it serves "
			}
			f.Telemetry.Waiting(s.Stream, why+resource.String())
		}
		known, err := f.loadGeneration(&followed{Selected: s, informer: informer})
		if err != nil {
			return nil, err
		}
		f.following = append(f.following, known)
		sources = append(sources, made)
	}
	f.warnWaiting(f.Current.Chosen.Load())
	return sources, f.know()
}

// warnWaiting says once which configured resources are not there. Those that the state knows have a stream that waits.
func (f *Follower) warnWaiting(chosen *Choice) {
	for _, left := range chosen.Waiting() {
		streamed := slices.ContainsFunc(f.following, func(s *followed) bool { return slices.Contains(s.Names, left.Name) })
		if !streamed {
			f.warnOnce(left.Name, "resource waits; its stream begins as soon as it is served", "resource", left.Name, "reason", left.Reason)
		}
	}
}

// warnOnce says it once of what is named.
func (f *Follower) warnOnce(of, text string, args ...any) {
	if !f.warned[of] {
		f.warned[of] = true
		f.Logger.Warn(text, args...)
	}
}

// know notes in the state what the streams are of.
func (f *Follower) know() error {
	var streams []change.Stream
	for _, s := range f.following {
		streams = append(streams, s.Stream)
	}
	return f.Store.KnowStreams(streams)
}

// Run asks what is served until ctx ends, for a pipeline that the telemetry looks into.
func (f *Follower) Run(ctx context.Context, set *pipeline.StreamSet) error {
	f.Telemetry.Follow(set.Views)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { // what the log is to be told without a new event: sinks that hold streams up, and gaps
		for sink.Pause(ctx, pause, nil) {
			f.Telemetry.Check()
		}
		f.Telemetry.TellAll()
	})
	f.tell(f.Catalog)
	f.define(ctx)
	next, gaveBack := pause, false
	for {
		if !sink.Pause(ctx, pause, nil) || !sink.Pause(ctx, next-pause, f.Nudged) {
			return nil
		}
		next = f.look(ctx, set)
		// Memory goes back to the system, once, when all streams are watching. The lists before that need more than
		// watches do, and the collector would keep it: it gives back only what is above its next goal, and quiet
		// streams do not reach one.
		if !gaveBack && f.Telemetry.Settled() {
			gaveBack = true
			debug.FreeOSMemory()
		}
	}
}

// look asks once, and returns when to ask again. What the server does not tell stays as it is.
func (f *Follower) look(ctx context.Context, set *pipeline.StreamSet) time.Duration {
	interval := time.Duration(f.Config.Discovery.Interval)
	catalog, err := f.Current.discovery.Read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.Telemetry.Discovered(nil, err)
		}
		return interval
	}
	f.clear(set)
	if f.chosen == nil || f.Catalog != catalog { // it is the same one while nothing has changed
		f.Catalog, f.stale = catalog, true
		var errs []error
		f.chosen, errs = Choose(catalog, f.Config.Resources)
		for _, err := range errs { // of entries of the configuration, now that other resources are served
			if err != nil && !errors.As(err, new(*source.UnknownResourceError)) { // a name that stands for nothing is on /statusz
				f.warnOnce(err.Error(), "not streamed", "error", err)
			}
		}
		f.warnWaiting(f.chosen)
	}
	f.admit(f.see(f.chosen.Streams), set)
	f.define(ctx)
	f.tell(catalog)
	if f.doubt(ctx) {
		return min(pause, interval)
	}
	return interval
}

// clear drops the streams that are over. What the state has of them goes when each sink knows.
func (f *Follower) clear(set *pipeline.StreamSet) {
	before := len(f.following)
	f.following = slices.DeleteFunc(f.following, func(s *followed) bool {
		over := s.ended && !set.Holds(s.Stream.String())
		if over {
			f.over = append(f.over, s.Stream)
		}
		return over
	})
	f.stale = f.stale || len(f.following) != before
	f.over = slices.DeleteFunc(f.over, func(stream change.Stream) bool {
		if set.Holds(stream.String()) { // it is back
			return true
		}
		gone, err := f.Store.ForgetStream(&stream)
		return gone || err != nil // who uses the state next says why
	})
}

// see goes on with the streams that are followed, in the version that is preferred now, and makes those that are not.
func (f *Follower) see(served []Selected) (arrived []*followed) {
	known := make(map[string]*followed, len(f.following))
	for _, s := range f.following {
		known[s.Stream.String()] = s
	}
	for _, s := range served {
		before := known[s.Stream.String()]
		switch {
		case !f.Admits(s.Stream.Resource.String()):
		case before == nil:
			made, err := f.make(s)
			if err != nil {
				f.notAdded(&s, err)
				continue
			}
			arrived = append(arrived, made)
		case !before.ended:
			before.informer.Serve(s.Stream.Resource.Version)
		}
	}
	return arrived
}

func (f *Follower) make(s Selected) (*followed, error) {
	made, informer, err := f.Build(s)
	if err != nil {
		return nil, err
	}
	informer.Serve(s.Stream.Resource.Version)
	run := made.Run
	made.Run = func(ctx context.Context, sinks []*listener.Intake) (over bool) {
		f.Telemetry.Joined(s.Stream)
		return run(ctx, sinks)
	}
	return f.loadGeneration(&followed{Selected: s, source: made, informer: informer})
}

func (f *Follower) notAdded(s *Selected, err error) {
	f.Logger.Warn("stream not added; retrying", "resource", s.Stream.String(), "error", err)
}

// admit publishes all that have arrived at once, since sinks are asked whether they want them, and lets each join.
func (f *Follower) admit(arrived []*followed, set *pipeline.StreamSet) {
	if len(arrived) > 0 {
		f.following, f.stale = append(f.following, arrived...), true
		if err := f.know(); err != nil {
			f.Logger.Warn("what the streams are of is not saved; retrying", "error", err)
		}
	}
	f.publish()
	refused := map[*followed]bool{}
	for _, s := range arrived {
		if err := set.Join(s.source); err != nil {
			f.notAdded(&s.Selected, err)
			refused[s], f.stale = true, true
		}
	}
	f.following = slices.DeleteFunc(f.following, func(s *followed) bool { return refused[s] })
	f.publish()
}

// publish makes the streams those that sinks and operators see, where they are others than before.
func (f *Follower) publish() {
	if !f.stale {
		return
	}
	now := &Choice{Left: f.chosen.Left, Others: slices.Clone(f.chosen.Others)}
	for _, s := range f.Current.Chosen.Load().Others { // which are not served now
		if !slices.ContainsFunc(now.Others, func(other Selected) bool { return other.Stream == s.Stream }) {
			now.Others = append(now.Others, s)
		}
	}
	for _, s := range f.following {
		now.Streams = append(now.Streams, s.Selected)
	}
	f.Current.Chosen.Store(now)
	f.stale = false
}

// define notes which of the streams are of custom resources, when other resources are served than before.
func (f *Follower) define(ctx context.Context) {
	if f.defined == f.Catalog {
		return
	}
	found, err := f.definitions(ctx)
	if f.undefined = err; err != nil {
		return
	}
	for _, s := range f.following {
		generation, custom := found.Generation(s.Stream.Resource)
		if !custom || generation == s.generation {
			continue
		}
		if err := f.Store.Define(s.Stream.String(), generation); err != nil {
			f.undefined = err
			return
		}
		s.generation = generation
		s.informer.Define(generation)
	}
	f.defined = f.Catalog
}

// definitions reads them, where any stream may be of a custom resource.
func (f *Follower) definitions(ctx context.Context) (*source.Definitions, error) {
	for _, s := range f.following {
		if source.IsCustom(s.Stream.Resource.String()) {
			return f.Current.discovery.Definitions(ctx)
		}
	}
	return new(source.Definitions), nil
}

// loadGeneration has the session know what the state knows of the definition.
func (f *Follower) loadGeneration(s *followed) (*followed, error) {
	generation, _, err := f.Store.Defined(s.Stream.String())
	if s.generation = generation; err == nil && generation != 0 {
		s.informer.Define(generation)
	}
	return s, err
}

// doubt looks at the streams whose resource the catalogs lack. It ends those whose definition was deleted. All others
// keep their objects and their position, and are tried again: a server may be of another version than its neighbour, or
// an aggregated one that is down. It says whether there are some that have to be looked at again soon.
func (f *Follower) doubt(ctx context.Context) (soon bool) {
	var doubtful []*followed
	for _, s := range f.following {
		switch resource := s.Stream.Resource; {
		case s.ended || f.Catalog.Serves(resource) || !f.Catalog.Tells(resource.Group):
			s.missed = 0
		case s.missed+1 < lacking:
			s.missed++
			soon = true
		case s.generation != 0:
			doubtful = append(doubtful, s)
		case source.IsCustom(resource.String()) && f.undefined != nil:
			f.warnUndefined(s, f.undefined)
		}
	}
	if len(doubtful) == 0 {
		return soon
	}
	found, err := f.Current.discovery.Definitions(ctx)
	for _, s := range doubtful {
		if err != nil {
			f.warnUndefined(s, err)
			continue
		}
		if _, defined := found.Generation(s.Stream.Resource); !defined {
			s.ended = true
			s.informer.End(found.Version)
		}
	}
	return soon
}

// warnUndefined says once of a stream that nobody can tell what became of its resource.
func (f *Follower) warnUndefined(s *followed, err error) {
	name := s.Stream.String()
	f.warnOnce("definition of "+name, "resource is not served, and nobody can tell whether its definition was deleted; its objects are kept until somebody can: allow the exporter to list customresourcedefinitions.apiextensions.k8s.io",
		"resource", name, "error", err)
}

// tell shows what is left out and why, and what the server could not tell.
func (f *Follower) tell(catalog *source.Catalog) {
	left := map[string]string{}
	for _, l := range f.Current.Chosen.Load().Left {
		left[l.Name] = l.Reason
	}
	f.Telemetry.Discovered(left, catalog.Incomplete())
}
