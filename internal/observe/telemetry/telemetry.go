package telemetry

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// Options says what is observed.
type Options struct {
	Version     string
	ClusterName string
	ClusterUID  string
	Streams     []change.Stream
	Sinks       map[string]Place
	Logger      *slog.Logger
	// Partial says whether the stream is of a part of its resource only, beside its namespace; nil is of none.
	Partial func(stream *change.Stream) bool
	// CountObjects returns how many objects of the stream a sink has.
	CountObjects func(sink string, stream change.Stream) (int, error)
	// CountLetters returns how many dead letters of a sink there are.
	CountLetters func(sink string) (int, error)
	// StateLog returns how the log of the state stands; nil where there is none.
	StateLog func() StateLog
	// Leadership returns who leads; nil is an exporter alone.
	Leadership func() Leadership
	// OfFleet says that a Fleet shows it, which has the metrics of the process once for all.
	OfFleet bool
	Task    string // the name of one of several of the cluster; "" is the only one
	// Received, where set, is told of each record, too, and returns at once.
	Received func(rec *change.Record)
}

// Telemetry is told what happens in the running process, and shows it: in metrics, in the log, and to who asks. Its
// methods may be called from any goroutine.
type Telemetry struct {
	Options
	registry *prometheus.Registry
	metrics  *metrics
	started  time.Time

	views atomic.Pointer[func() *listener.Views] // nil before the pipeline runs

	mu     sync.Mutex // guards the following
	states states
}

// New returns a Telemetry in which nothing has happened yet.
func New(options Options) *Telemetry {
	registry := prometheus.NewRegistry()
	var labelled prometheus.Registerer = registry
	if options.ClusterName != "" {
		labelled = prometheus.WrapRegistererWith(prometheus.Labels{"cluster": options.ClusterName}, registry)
	}
	if options.Task != "" {
		labelled = prometheus.WrapRegistererWith(prometheus.Labels{"task": options.Task}, labelled)
	}
	t := &Telemetry{
		Options: options, registry: registry, metrics: newMetrics(labelled), started: time.Now(),
		states: states{streams: map[string]*streamState{}, sinks: map[string]*sinkState{}, rare: map[rare]*tally{}},
	}
	for _, stream := range options.Streams {
		t.states.streams[stream.String()] = t.newStream(stream, false)
	}
	for name, place := range options.Sinks {
		t.states.sinks[name] = &sinkState{State: starting, Place: place}
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubecdc_build_info", Help: "1, with the version as label."}, []string{"version"})
	build.WithLabelValues(options.Version).Set(1)
	labelled.MustRegister(t, build)
	if !options.OfFleet {
		labelled.MustRegister(ofProcess()...)
	}
	return t
}

// ofProcess are the metrics that any Go process has.
func ofProcess() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

func (t *Telemetry) newStream(stream change.Stream, late bool) *streamState {
	s := newStreamState(stream, late)
	s.partial = s.partial || t.Partial != nil && t.Partial(&stream)
	return s
}

// Follow tells where to ask how the sinks stand with the streams.
func (t *Telemetry) Follow(views func() *listener.Views) { t.views.Store(&views) }

// look asks how the sinks stand, and shows it; the caller does not hold mu, since the pipeline calls under locks of its
// own.
func (t *Telemetry) look() {
	ask := t.views.Load()
	if ask == nil {
		return
	}
	views := (*ask)()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, s := range t.states.streams {
		s.show(views.Streams[name], time.Now())
	}
	for name, s := range t.states.sinks {
		s.Mark = views.Marks[name]
	}
}

// commitState is the store on /statusz.
type commitState struct {
	Trouble
	FailingSince time.Time `json:"failingSince,omitzero"`
	SavedAgain   time.Time `json:"savedAgain,omitzero"` // when it was, after it could not be; zero where that never was so
	Log          *StateLog `json:"log,omitempty"`

	attempts int // that failed
}

// StateLog is the log of the state on /statusz.
type StateLog struct {
	LagSeconds float64 `json:"lagSeconds"`       // since the oldest saved change that it lacks
	Fenced     bool    `json:"fenced,omitempty"` // another exporter writes it
	Trouble
}

// Leadership is who leads, on /statusz, where several exporters share a task.
type Leadership struct {
	Leads  bool   `json:"leads"`            // this one does
	Leader string `json:"leader,omitempty"` // the host that does; "" is nobody, or not known
	// when that one got the Lease, by its own clock
	Since     time.Time `json:"since,omitzero"`
	Lease     string    `json:"lease"`     // namespace/name
	Takeovers int       `json:"takeovers"` // how often this one has begun to lead since it started
	// of the API server, as long as it does not answer for the Lease
	LastError string   `json:"lastError,omitempty"`
	Standby   *Standby `json:"standby,omitempty"` // while this one stands by
}

// Standby is how an exporter follows the log of the state while it stands by.
type Standby struct {
	Whole      bool    `json:"whole"`      // it has had all that the log had, once since it began to wait
	LagSeconds float64 `json:"lagSeconds"` // since it had all that the log had then, or since it began to wait
	Trouble
}

// discoveryState is what is known of the API server's discovery on /statusz.
type discoveryState struct {
	LastRead time.Time `json:"lastRead,omitzero"`
	Trouble            // of the newest attempt, or what the server could not tell; when it was heard first
	// resources and names that are not streamed, and why
	LeftOut map[string]string `json:"leftOut,omitempty"`
}

// states are what is known of the streams, the sinks, the store and discovery. They have no lock: their owner has one.
type states struct {
	streams   map[string]*streamState
	name      []byte // of a stream, while it is looked for
	sinks     map[string]*sinkState
	commit    commitState
	discovery discoveryState
	ending    bool               // nobody looks any more: what comes is told at once
	started   bool               // the log knows that the streams are watched
	failing   time.Time          // when the log was told last of streams that fail
	outages   [outages]time.Time // since when the log knows of each; zero where it knows of none
	rare      map[rare]*tally
}

// stream is what is known of a stream; of one that is forgotten, it is a state that nobody sees.
func (all *states) stream(stream change.Stream) *streamState {
	all.name = stream.AppendString(all.name[:0]) // and no string, which would be one a record
	if s := all.streams[string(all.name)]; s != nil {
		return s
	}
	over := newStreamState(stream, true)
	over.over = true
	return over
}

// unhealthy says what a restart might mend: a stream that is silent although no sink holds it up.
func (all *states) unhealthy(now time.Time) []string {
	for _, s := range all.sinks {
		if s.QueueRecords > 0 {
			return nil // back-pressure: the streams may be waiting for this sink
		}
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(all.streams)) {
		if s := all.streams[name]; s.State != waiting && now.Sub(s.sign) > silence {
			problems = append(problems, fmt.Sprintf("stream %s gave no sign of life for %s", name, now.Sub(s.sign).Round(time.Second)))
		}
	}
	return problems
}

// rare is a line about what may happen to any number of objects or streams: the log is told at once, and then once a
// minute with a count and the newest example.
type rare struct {
	of      string // the sink, the stream, or the stream and the reason
	level   slog.Level
	text    string
	counted string // the name of the count
}

// tally counts what the log does not know of yet.
type tally struct {
	told    time.Time
	since   int   // the last line
	example []any // the newest of them
}

// rarely counts one more; the caller holds mu.
func (t *Telemetry) rarely(line rare, example ...any) {
	a := t.states.rare[line]
	if a == nil {
		a = new(tally)
		t.states.rare[line] = a
	}
	a.since, a.example = a.since+1, example
	if now := time.Now(); t.states.ending || now.Sub(a.told) >= word {
		t.tell(line, a, now)
	}
}

// tellRare tells the log of what it is time for, or of all that is left, the worst first; the caller holds mu.
func (t *Telemetry) tellRare(now time.Time, last bool) {
	worse := func(a, b rare) int {
		return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.text, b.text), cmp.Compare(a.of, b.of))
	}
	for _, line := range slices.SortedFunc(maps.Keys(t.states.rare), worse) {
		switch a := t.states.rare[line]; {
		case !last && now.Sub(a.told) < word:
		case a.since == 0:
			delete(t.states.rare, line)
		default:
			t.tell(line, a, now)
		}
	}
}

func (t *Telemetry) tell(line rare, a *tally, now time.Time) {
	log := map[slog.Level]func(string, ...any){
		slog.LevelInfo: t.Logger.Info, slog.LevelWarn: t.Logger.Warn, slog.LevelError: t.Logger.Error,
	}[line.level]
	log(line.text, append(a.example, line.counted, a.since)...)
	*a = tally{told: now}
}

// silence is how long a stream may give no sign of life. A watch is opened again after ten minutes at most.
const silence = 15 * time.Minute
