package telemetry

import (
	"log/slog"
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
	Sinks       []string
	Places      map[string]Place // of the sinks
	Spools      map[string]int64 // their limits in bytes, of sinks that have one
	Logger      *slog.Logger
	// Positions are those that the state had at the start, by stream.
	Positions map[string]string
	// Partial says whether the stream is of a part of its resource only, beside its namespace; nil is of none.
	Partial func(stream *change.Stream) bool
	// CountObjects returns how many objects of the stream a sink has.
	CountObjects func(sink string, stream change.Stream) (int, error)
	// CountLetters returns how many dead letters of a sink there are; nil counts none.
	CountLetters func(sink string) (int, error)
	// StateLog returns how the log of the state stands; nil where there is none.
	StateLog func() StateLog
	// Leadership returns who leads; nil is an exporter alone.
	Leadership func() Leadership
	// Received, where set, is told of each record, too, and returns at once.
	Received func(rec *change.Record)
}

// Telemetry is told what happens in the running process, and shows it. Its methods may be called from any goroutine.
type Telemetry struct {
	*known

	ofStreams // what it is told of streams and their reconciles, and of discovery
	ofSinks   // what it is told of sinks and dead letters
	ofState   // what it is told of the saved state
	shown     // what people, probes and Prometheus are told
}

// The parts of a Telemetry: each knows all that is known.
type (
	ofStreams struct{ *known }
	ofSinks   struct{ *known }
	ofState   struct{ *known }
	shown     struct{ *known }
)

// known is what is known of the running process, and where it is told: the metrics and the log.
type known struct {
	Options
	registry *prometheus.Registry
	metrics  *metrics
	gauges   gauges
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
	t := &known{
		Options: options, registry: registry, metrics: newMetrics(labelled), gauges: newGauges(), started: time.Now(),
		states: states{streams: map[string]*streamState{}, sinks: map[string]*sinkState{}},
	}
	for _, stream := range options.Streams {
		s := t.newStream(stream, false)
		s.ResourceVersion = options.Positions[stream.String()]
		t.states.streams[stream.String()] = s
	}
	for _, name := range options.Sinks {
		t.states.sinks[name] = &sinkState{State: starting, Place: options.Places[name]}
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubecdc_build_info", Help: "1, with the version as label."}, []string{"version"})
	build.WithLabelValues(options.Version).Set(1)
	labelled.MustRegister(shown{t}, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Telemetry{known: t, ofStreams: ofStreams{t}, ofSinks: ofSinks{t}, ofState: ofState{t}, shown: shown{t}}
}

func (t *known) newStream(stream change.Stream, late bool) *streamState {
	s := newStreamState(stream, late)
	s.partial = s.partial || t.Partial != nil && t.Partial(&stream)
	return s
}

// Follow tells where to ask how the sinks stand with the streams.
func (t *known) Follow(views func() *listener.Views) { t.views.Store(&views) }

// look asks how the sinks stand, and shows it; the caller does not hold mu, since the pipeline calls under locks of its
// own.
func (t *known) look() {
	ask := t.views.Load()
	if ask == nil {
		return
	}
	views := (*ask)()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, s := range t.states.streams {
		s.show(views.Streams[name])
	}
	for name, s := range t.states.sinks {
		s.Mark = views.Marks[name]
	}
}
