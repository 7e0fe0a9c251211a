package selection

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// scripted is an API server's discovery that says what the test wants, and nothing else.
type scripted struct {
	versions  []string // of gears.example.com that are served, the preferred one first
	stale     bool     // it cannot tell of example.com, as of an aggregated server that is down
	failing   bool     // it answers no question for discovery
	named     string   // what is configured beside pods; "" is everything
	builtin   bool     // gears have no definition
	defined   bool     // gears are, whatever discovery says
	forbidden bool     // nobody may know
	asked     int      // times that it was asked for definitions
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case s.failing:
		w.WriteHeader(http.StatusInternalServerError)
	case path == "/api":
		s.write(w, request, "", s.version("v1", "pods", "Pod"))
	case path == "/apis":
		var versions []string
		for _, v := range s.versions {
			versions = append(versions, s.version(v, "gears", "Gear"))
		}
		if len(versions) == 0 && s.stale {
			versions = []string{`{"version":"v1","freshness":"Stale"}`}
		}
		s.write(w, request, "example.com", versions...)
	case s.forbidden:
		w.WriteHeader(http.StatusForbidden)
	default:
		s.asked++
		s.writeDefinitions(w)
	}
}

func (s *scripted) writeDefinitions(w http.ResponseWriter) {
	item := ""
	if !s.builtin && (s.defined || len(s.versions) > 0) {
		item = `{"metadata":{"name":"gears.example.com","resourceVersion":"7","generation":1}}`
	}
	fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[%s]}`, item)
}

func (s *scripted) write(w http.ResponseWriter, request *http.Request, group string, versions ...string) {
	items := ""
	if len(versions) > 0 {
		items = fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, group, strings.Join(versions, ","))
	}
	tag := fmt.Sprintf(`"%x"`, crc32.ChecksumIEEE([]byte(items)))
	w.Header().Set("ETag", tag)
	if request.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`, items)
}

func (*scripted) version(version, name, kind string) string {
	return fmt.Sprintf(`{"version":%q,"freshness":"Current","resources":[{"resource":%q,"responseKind":{"group":"","version":"","kind":%q},"scope":"Namespaced","singularResource":"","verbs":["list","watch"]}]}`,
		version, name, kind)
}

// followRig is a follower of the scripted server, in a pipeline whose streams read nothing.
type followRig struct {
	*scripted
	t     *testing.T
	log   *bytes.Buffer
	f     *Follower
	set   *pipeline.StreamSet
	over  chan struct{} // closed when gears are to be over, as a session would be that was ended
	left  chan string
	built []string // streams with their versions, each time that one was made

	mu    sync.Mutex       // guards wants
	wants map[*Choice]bool // that were published when the sink was asked whether it wants a stream
	runs  sync.WaitGroup   // streams that were built, and do not run yet
}

// idle is a sink that holds whatever it is given.
type idle struct{}

func (idle) Open(context.Context, sink.Opening) error { return nil }

func (idle) Write(context.Context, []sink.Message) (sink.Mark, error) {
	return "1", nil
}

func (idle) Close(context.Context) error { return nil }

// follow runs the steps beside a pipeline, in the place of the follower's own loop.
func follow(t *testing.T, script *scripted, steps func(*followRig)) {
	t.Helper()
	server := httptest.NewServer(script)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
	store, err := checkpoint.Open(t.Context(), filepath.Join(t.TempDir(), "state"), checkpoint.Options{})
	must(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := &config.Config{Resources: []config.Resource{{Name: "*"}}}
	if script.named != "" {
		cfg.Resources = []config.Resource{{Name: "pods"}, {Name: script.named}}
	}
	cfg.Discovery.Interval = config.Duration(time.Minute)
	c := new(Current)
	catalog, err := c.Resolve(t.Context(), &rest.Config{Host: server.URL, Transport: transport}, cfg.Resources)
	must(t, err)
	var log bytes.Buffer
	r := &followRig{scripted: script, log: &log, t: t, over: make(chan struct{}), left: make(chan string, 8), wants: map[*Choice]bool{}}
	r.f = &Follower{
		Config: cfg, Current: c, Catalog: catalog, Store: store, Admits: func(string) bool { return true }, Build: r.build,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	r.run(store, steps)
}

func (r *followRig) run(store *checkpoint.Store, steps func(*followRig)) {
	r.t.Helper()
	told := telemetry.New(telemetry.Options{Logger: r.f.Logger, Sinks: map[string]telemetry.Place{"out": {}}})
	observer := pipeline.NopObserver()
	observer.Left = func(stream change.Stream) { r.left <- stream.String() }
	sources, err := r.f.Start(told)
	must(r.t, err)
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	err = pipeline.Run(ctx, pipeline.Config{
		ClusterUID: "u", Sources: sources, Sinks: []listener.Sink{{Name: "out", Target: idle{}, Wants: r.wanted, Queue: fifo.Limit{Bytes: 1, Records: 1}}}, Store: store, StopTimeout: time.Minute,
		Follow: func(_ context.Context, set *pipeline.StreamSet) error {
			defer stop()
			r.set = set
			steps(r)
			return nil
		},
		Observer: observer,
	})
	if err != nil {
		r.t.Error(err)
	}
}

// wanted says that the sink wants every stream.
func (r *followRig) wanted(*change.Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wants[r.f.Current.Chosen.Load()] = true
	return true
}

// build makes a stream that is over when the test says so.
func (r *followRig) build(s Selected) (pipeline.Source, *source.SharedInformer, error) {
	r.built = append(r.built, s.Stream.String()+" "+s.Stream.Resource.Version)
	r.runs.Add(1)
	over := r.over
	return pipeline.Source{
		Stream: s.Stream, Join: func(*listener.Intake) {},
		Run: func(ctx context.Context, sinks []*listener.Intake) (isOver bool) {
			sinks[0].Takes(&s.Stream)
			r.runs.Done()
			select {
			case <-ctx.Done():
				return false
			case <-over:
				return true
			}
		},
	}, source.NewSharedInformer(source.Config{}), nil
}

// look lets the follower ask once, and wants what it then knows: streams, "!" after one that ended, "?" for each
// catalog in a row that lacks it.
func (r *followRig) look(step, want string) {
	r.t.Helper()
	r.f.look(r.t.Context(), r.set)
	var known []string
	for _, s := range r.f.following {
		text := s.Stream.Resource.Name + strings.Repeat("?", s.missed)
		if s.ended {
			text += "!"
		}
		known = append(known, text)
	}
	slices.Sort(known)
	if got := strings.Join(known, " "); got != want {
		r.t.Errorf("%s: the follower knows %q, want %q", step, got, want)
	}
}

// lacks lets the follower ask until it doubts that gears are there: one catalog proves nothing, and asks for nothing.
func (r *followRig) lacks() {
	r.t.Helper()
	r.versions = nil
	asked := r.asked
	for i := 1; i < lacking; i++ {
		r.look("the catalog lacks it", "gears"+strings.Repeat("?", i)+" pods")
	}
	if r.asked > asked+1 { // the catalog is another one
		r.t.Errorf("definitions are asked for %d times before anybody doubts", r.asked-asked)
	}
}

// TestI4AResourceIsGoneWhoseDefinitionIs, after some catalogs that lack it.
func TestI4AResourceIsGoneWhoseDefinitionIs(t *testing.T) {
	follow(t, &scripted{versions: []string{"v1"}}, func(r *followRig) {
		r.look("at first", "gears pods")
		r.lacks()
		r.versions = []string{"v1"}
		r.look("back again", "gears pods")
		r.defined = true
		r.lacks()
		r.look("it is defined", "gears???? pods")
		r.forbidden = true
		r.look("nobody may know", "gears???? pods")
		r.look("nor again", "gears???? pods")
		if n := strings.Count(r.log.String(), "customresourcedefinitions"); n != 1 {
			t.Errorf("the log says %d times that nobody may know, want once:\n%s", n, r.log)
		}
		r.defined, r.forbidden = false, false
		r.look("gone", "gears????! pods")
		r.look("once", "gears! pods")
	})
}

// TestI4AResourceThatNoDefinitionMakesIsNeverGone: that a server does not serve it proves nothing. It may be built into
// another version of the API server only, or be an aggregated one's, which is not there.
func TestI4AResourceThatNoDefinitionMakesIsNeverGone(t *testing.T) {
	follow(t, &scripted{versions: []string{"v1"}, builtin: true}, func(r *followRig) {
		for range 2 {
			r.look("at first", "gears pods")
			r.lacks()
			r.look("certainly not served", "gears???? pods")
			r.versions = []string{"v1"}
		}
		if len(r.built) != 2 || strings.Contains(r.log.String(), "WARN") {
			t.Errorf("built are %q, the log is\n%s", r.built, r.log)
		}
	})
}

// TestI4AnIncompleteCatalogEndsNothing, however often it comes, nor does a server that answers nothing.
func TestI4AnIncompleteCatalogEndsNothing(t *testing.T) {
	follow(t, &scripted{versions: []string{"v1"}}, func(r *followRig) {
		r.look("at first", "gears pods")
		for range 3 {
			r.versions, r.stale = nil, true
			r.look("the group is untold", "gears pods")
			r.failing = true
			r.look("nothing is told", "gears pods")
			r.failing = false
		}
		r.stale = false
		r.look("the first full one", "gears? pods")
		r.stale = true
		r.look("untold again", "gears pods")
		r.stale = false
		r.lacks()
		r.failing = true
		r.look("nothing is told, which proves nothing", "gears???? pods")
		r.failing = false
		r.look("the last", "gears????! pods")
	})
}

// TestI4AResourceThatIsBackIsANewStream, when the old one is forgotten and not before.
func TestI4AResourceThatIsBackIsANewStream(t *testing.T) {
	follow(t, &scripted{}, func(r *followRig) {
		r.look("at first", "pods")
		r.versions = []string{"v1"}
		r.look("it comes", "gears pods")
		if !r.set.Holds("gears.example.com") {
			t.Error("the pipeline does not have the stream")
		}
		r.lacks()
		r.look("gone", "gears????! pods")
		r.versions = []string{"v2"}
		r.look("back before it is forgotten", "gears! pods")
		over := r.over
		r.over = make(chan struct{})
		close(over)
		for <-r.left != "gears.example.com" { // pods share the end of the first streams
		}
		if r.set.Holds("gears.example.com") {
			t.Fatal("the pipeline still has the stream, and has told that it left")
		}
		r.look("back", "gears pods")
		if want := []string{"pods v1", "gears.example.com v1", "gears.example.com v2"}; !slices.Equal(r.built, want) {
			t.Errorf("built are %q, want %q", r.built, want)
		}
	})
}

// TestI4AResourceThatIsNotInstalledIsFollowedWhenItIs, said once that it is not, and every time that it comes.
func TestI4AResourceThatIsNotInstalledIsFollowedWhenItIs(t *testing.T) {
	follow(t, &scripted{named: "gears.example.com"}, func(r *followRig) {
		r.look("not there", "pods")
		r.look("still not there", "pods")
		const waits = "resource waits; its stream begins as soon as it is served"
		if n := strings.Count(r.log.String(), waits); n != 1 {
			t.Errorf("the log says %d times that it waits, want once:\n%s", n, r.log)
		}
		r.versions = []string{"v1"}
		r.look("installed", "gears pods")
		if len(r.f.Current.Chosen.Load().Left) > 0 {
			t.Errorf("left out are %v", r.f.Current.Chosen.Load().Left)
		}
		r.versions = nil
		r.look("removed", "gears? pods")
		r.versions = []string{"v2"}
		r.look("back at once", "gears pods")
	})
}

// TestAResourceGoesOnInAnotherVersion is one stream; which one is read is the session's.
func TestAResourceGoesOnInAnotherVersion(t *testing.T) {
	follow(t, &scripted{versions: []string{"v1"}}, func(r *followRig) {
		r.look("at first", "gears pods")
		for _, versions := range [][]string{{"v2", "v1"}, {"v2"}, {"v3"}} {
			r.versions = versions
			r.look(strings.Join(versions, " "), "gears pods")
		}
		if len(r.built) != 2 {
			t.Errorf("built are %q, want each once", r.built)
		}
	})
}

// TestStreamsThatArriveTogetherArePublishedOnce, before any of them joins: to publish all for each would take longer
// the more there are, squared.
func TestStreamsThatArriveTogetherArePublishedOnce(t *testing.T) {
	follow(t, &scripted{}, func(r *followRig) {
		const crowd = 50
		var streams []Selected
		for i := range crowd {
			resource := change.Resource{Group: "example.com", Version: "v1", Name: fmt.Sprint("gears", i)}
			streams = append(streams, Selected{Stream: change.Stream{Resource: resource}})
		}
		r.look("at first", "pods")
		arrived := r.f.see(streams)
		again, err := r.f.make(streams[0])
		must(t, err)
		r.runs.Done() // the second of a name never runs
		r.mu.Lock()
		clear(r.wants)
		r.mu.Unlock()
		r.f.admit(arrived, r.set)
		r.runs.Wait()
		r.mu.Lock()
		published := len(r.wants)
		r.mu.Unlock()
		if published > 1 {
			t.Errorf("%d choices were published while the streams joined, want 1", published)
		}
		r.f.admit([]*followed{again}, r.set)
		if now := r.f.Current.Chosen.Load(); len(now.Streams) != crowd+1 || len(r.f.following) != crowd+1 {
			t.Errorf("published are %d streams and followed %d, want %d: one joined twice", len(now.Streams), len(r.f.following), crowd+1)
		}
	})
}

// TestWhatIsFollowedIsPublishedWhereItChanged, with the catalog or without it, and stays the same choice otherwise.
func TestWhatIsFollowedIsPublishedWhereItChanged(t *testing.T) {
	follow(t, &scripted{versions: []string{"v1"}}, func(r *followRig) {
		published := func() *Choice { return r.f.Current.Chosen.Load() }
		r.look("at first", "gears pods")
		first := published()
		r.look("again", "gears pods")
		if published() != first {
			t.Error("the same choice was published twice")
		}
		r.lacks()
		if published() == first {
			t.Error("nothing was published of another catalog")
		}
		r.look("certainly gone", "gears????! pods")
		before := published()
		close(r.over)
		for <-r.left != "gears.example.com" { // pods share the end of the streams
		}
		r.look("forgotten", "pods")
		if now := published(); now == before || len(now.Streams) != 1 {
			t.Errorf("published are %d streams, want 1", len(now.Streams))
		}
	})
}
