package telemetry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Describe is prometheus.Collector's. It describes nothing, since to collect reads the whole inventory once, which a
// takeover need not wait for.
func (t *Telemetry) Describe(chan<- *prometheus.Desc) {}

// gauge has a value collected. Its labels are names with their values.
type gauge func(name, help string, value float64, labels ...string)

// Collect is prometheus.Collector's. It reads the inventory's size from the store where that changed.
func (t *Telemetry) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
		of := prometheus.Labels{}
		for pair := range slices.Chunk(labels, 2) {
			of[pair[0]] = pair[1]
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("kubecdc_"+name, help, nil, of), kind, value)
	}
	gauge := func(name, help string, value float64, labels ...string) {
		send(prometheus.GaugeValue, name, help, value, labels...)
	}
	for name := range t.Options.Sinks {
		if n, err := t.CountLetters(name); err == nil {
			gauge("dead_letters", "Records that the sink refused for good, kept until they are sent again or deleted.", float64(n), "sink", name)
		}
	}
	status := t.Status()
	if log := status.State.Log; log != nil {
		gauge("state_log_lag_seconds", "Time since the oldest saved change was saved that the log of the state lacks, 0 if it lacks none.", log.LagSeconds)
	}
	if leads := status.HA; leads != nil {
		gauge("leader", "1 while this exporter leads, 0 while it stands by.", oneIf(leads.Leads))
		if leads.Standby != nil {
			gauge("standby_lag_seconds", "Time since this standby had all that the log of the state had then.", leads.Standby.LagSeconds)
		}
		send(prometheus.CounterValue, "takeovers_total", "How often this exporter has begun to lead.", float64(leads.Takeovers))
	}
	for name, s := range status.Streams {
		t.collectStream(name, &s, gauge)
	}
	for name, s := range status.Sinks {
		s.collect(name, gauge)
	}
}

// collectStream has the gauges of a stream collected.
func (t *Telemetry) collectStream(name string, s *streamState, gauge gauge) {
	gauge("history_seconds", "Estimate of how far back the API server can tell what changed of the resource.", s.HistorySeconds, "resource", name)
	gauge("history_left_seconds", "Estimate of how long the API server still has the history after the "+
		"saved position; all of it if nothing waits and a watch is open.", s.HistoryLeftSeconds, "resource", name)
	for _, state := range []string{starting, snapshotting, watching, waiting, failing} {
		gauge("stream_state", "1 for the state that the stream of the resource is in, 0 for the others.", oneIf(s.State == state), "resource", name, "state", state)
	}
	for sinkName, taker := range s.Sinks {
		of := []string{"resource", name, "sink", sinkName}
		if taker.ResourceVersion != "" {
			gauge("position_age_seconds", "Time since the sink's saved position of the resource last moved or was confirmed.", taker.AgeSeconds, of...)
		}
		if n, err := t.countObjects(s, sinkName); err == nil {
			gauge("inventory_objects", "Objects that the sinks have, according to the saved state.", float64(n), of...)
		}
	}
}

// collect has the gauges of a sink collected.
func (s *sinkState) collect(name string, gauge gauge) {
	for _, state := range []string{starting, open, failing, stopped} {
		gauge("sink_state", "1 for the state that the sink is in, 0 for the others.", oneIf(s.State == state), "sink", name, "state", state)
	}
	gauge("queue_bytes", "Bytes waiting for the sink.", float64(s.QueueBytes), "sink", name)
	gauge("queue_records", "Records waiting for the sink or being written.", float64(s.QueueRecords), "sink", name)
	gauge("spool_bytes", "Bytes spooled to disk for the sink.", float64(s.SpoolBytes), "sink", name)
	gauge("oldest_unacked_seconds", "Age of the oldest record that the sink has not acknowledged.", s.OldestUnackedSeconds, "sink", name)
	gauge("sink_stopped", "1 while the sink is stopped by an error that only a person can fix, else 0.", oneIf(s.State == stopped), "sink", name)
	if s.Asking != nil {
		gauge("signals_up", "1 while others can ask through the sink's broker, else 0.", oneIf(s.Asking.LastError == ""), "sink", name)
	}
	if s.Schemas == nil {
		return
	}
	counts := map[string]int{}
	for _, schema := range s.Schemas {
		counts[schema.State]++
	}
	for _, state := range []string{schemaRegistered, schemaBehind, schemaWaiting, schemaStopped} {
		gauge("sink_schemas", "Resources whose records are written with a schema of a registry, by how that stands.", float64(counts[state]), "sink", name, "state", state)
	}
}

// Handler serves /metrics, /healthz, /readyz and /statusz.
func (t *Telemetry) Handler() http.Handler {
	unhealthy := func() []string {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.states.unhealthy(time.Now())
	}
	return serve(promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{}), unhealthy, t.serveReady, func() any { return t.Status() })
}

// serve is a handler of what is asked for, with a limit to how long a reader may take.
func serve(metrics http.Handler, unhealthy func() []string, ready http.HandlerFunc, status func() any) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, unhealthy()) })
	mux.HandleFunc("GET /readyz", ready)
	mux.HandleFunc("GET /statusz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.Encode(status()) // a reader that went away is no error of ours
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // where it fails, writing fails, too
		mux.ServeHTTP(w, r)
	})
}

// answerTime is how long a reader may take for an answer: one that stands still would keep it in memory.
const answerTime = 30 * time.Second

// ready are the checks of readiness now.
func (t *Telemetry) ready() []check {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checks()
}

func (t *Telemetry) serveReady(w http.ResponseWriter, r *http.Request) {
	checks := t.ready()
	waiting := unready(checks)
	if !r.URL.Query().Has("verbose") {
		answer(w, waiting)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	verdict := "ready"
	if len(waiting) > 0 {
		verdict = "not ready"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for _, c := range checks { // a line for each, as the API server writes them
		sign, what := "+", c.state
		if c.problem != "" {
			sign, what = "-", c.problem
		}
		fmt.Fprintf(w, "[%s]%s: %s\n", sign, c.name, strings.ReplaceAll(what, "\n", " "))
	}
	fmt.Fprintln(w, verdict) // a reader that went away is no error of ours
}

// answer says ok, or 503 and one problem a line.
func answer(w http.ResponseWriter, problems []string) {
	if len(problems) > 0 {
		http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ok\n"))
}

// Status is the document at /statusz.
type Status struct {
	Version       string                 `json:"version"`
	Cluster       string                 `json:"cluster"`
	ClusterUID    string                 `json:"clusterUid"`
	UptimeSeconds float64                `json:"uptimeSeconds"`
	Healthy       bool                   `json:"healthy"`
	Ready         bool                   `json:"ready"`
	Problems      []string               `json:"problems,omitempty"`
	HA            *Leadership            `json:"ha,omitempty"`
	Streams       map[string]streamState `json:"streams"`
	Sinks         map[string]sinkState   `json:"sinks"`
	State         commitState            `json:"state"`
	Discovery     discoveryState         `json:"discovery"`
}

// countObjects returns how many objects of a stream a sink has.
func (t *Telemetry) countObjects(s *streamState, sinkName string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, now := s.counts[sinkName], time.Now()
	if !c.counted.IsZero() && (now.Sub(c.counted) < recountPause*c.took || c.counted.Sub(c.written) >= saved) {
		return c.n, nil
	}
	n, err := t.CountObjects(sinkName, s.stream)
	if err == nil {
		s.counts[sinkName] = objectCount{n: n, counted: now, took: time.Since(now), written: c.written}
	}
	return n, err
}

// Status is how things stand now.
func (t *Telemetry) Status() Status {
	t.look()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	status := Status{
		Version: t.Version, Cluster: t.ClusterName, ClusterUID: t.ClusterUID, UptimeSeconds: now.Sub(t.started).Seconds(),
		Streams: map[string]streamState{}, Sinks: map[string]sinkState{}, State: t.states.commit, Discovery: t.states.discovery,
	}
	if t.StateLog != nil {
		status.State.Log = new(t.StateLog())
	}
	if t.Leadership != nil {
		status.HA = new(t.Leadership())
	}
	for name, s := range t.states.streams {
		shown := *s
		shown.State = s.standing()
		shown.PositionAgeSeconds = age(now, s.confirmed)
		shown.HistorySeconds = s.history(now, s.oldest()).Seconds()
		shown.HistoryLeftSeconds = s.historyLeft(now, s.oldest()).Seconds()
		if shown.HeldBy = s.holders(now); shown.HeldBy != nil {
			shown.HeldSince = s.oldest()
		}
		status.Streams[name] = shown
	}
	for name, s := range t.states.sinks {
		shown := *s
		shown.OldestUnackedSeconds = age(now, s.oldest)
		shown.FailingSince, shown.Schemas = s.outage.began, maps.Clone(s.Schemas)
		if s.Asking != nil {
			shown.Asking = new(*s.Asking)
		}
		status.Sinks[name] = shown
	}
	status.Problems = t.states.unhealthy(now)
	status.Healthy, status.Ready = len(status.Problems) == 0, len(unready(t.checks())) == 0
	return status
}

// Settled says whether every sink is open and no stream that is served starts or is being compared.
func (t *Telemetry) Settled() bool {
	t.look()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.states.streams {
		if state := s.standing(); state == starting || state == snapshotting {
			return false
		}
	}
	return len(unready(t.checks())) == 0
}

// check is one thing that readiness depends on.
type check struct {
	name    string
	problem string // "" is none
	state   string // for people
}

// unready says what has not started yet, or stands still.
func unready(checks []check) (problems []string) {
	for _, c := range checks {
		if c.problem != "" {
			problems = append(problems, c.problem)
		}
	}
	return problems
}

// checks are all that readiness depends on, and what of the rest a person may want to know; the caller holds mu. Of the
// streams, those count that were there when the process started and have neither begun nor failed to. One that is
// forbidden or not served is on /statusz, and holds nothing up. Credentials that are refused are a person's to mend, as
// those of a sink.
//
// A standby that still reads the log of the state for the first time is not ready: an update that waits for it can stop
// the leader, and the takeover reads little. One that cannot read the log takes over all the same.
func (t *Telemetry) checks() []check {
	var checks []check
	add := func(name, state, failure string) *check {
		if failure != "" {
			state += ": " + failure
		}
		checks = append(checks, check{name: name, state: state})
		return &checks[len(checks)-1]
	}
	refused := ""
	for _, name := range slices.Sorted(maps.Keys(t.states.streams)) {
		s := t.states.streams[name]
		c := add("stream "+name, s.State, s.LastError)
		if s.State == starting && !s.late {
			c.problem = "stream " + name + " has not started"
		}
		if s.outage == Refused {
			refused = s.LastError
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.states.sinks)) {
		s := t.states.sinks[name]
		c := add("sink "+name, s.State, s.LastError)
		if s.State == stopped {
			c.problem = "sink " + name + " is stopped: " + s.LastError
		} else if !s.opened {
			if c.problem = "sink " + name + " is not open"; s.LastError != "" {
				c.problem += ": " + s.LastError
			}
		}
	}
	if c := add("state", "saved", ""); t.states.commit.LastError != "" {
		c.problem = "the state is not saved: " + t.states.commit.LastError
	}
	if refused != "" {
		add("credentials", "", "").problem = "the API server refuses the credentials: " + refused + ": renew the exporter's token or certificate"
	}
	if t.Leadership == nil {
		return checks
	}
	b := t.Leadership().Standby
	switch {
	case b == nil:
	case b.LastError != "":
		add("standby", "cannot follow the log of the state", b.LastError)
	case !b.Whole:
		add("standby", "", "").problem = "this standby reads the log of the state for the first time"
	default:
		add("standby", "follows the log of the state", "")
	}
	return checks
}

// holders are the sinks that lag by more than half of the stream's history, nil where none does.
func (s *streamState) holders(now time.Time) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Sinks)) {
		if since := s.Sinks[name].Since; !since.IsZero() && now.Sub(since) > s.history(now, s.oldest())/2 {
			names = append(names, name)
		}
	}
	return names
}

// tellHeld tells once of sinks that lag by more than half of the API server's history: a gap follows, unless they come
// back. A sink that fails is told of once until it takes records again, however many streams follow; the line that says
// that it still fails counts them. The caller holds mu.
func (t *Telemetry) tellHeld(now time.Time) {
	held, soonest, first := 0, mostHistory, ""
	var sinks []string
	holds := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(t.states.streams)) {
		s, told := t.states.streams[name], len(sinks)
		for _, sink := range s.holders(now) {
			if holds[sink]++; !t.states.sinks[sink].holding {
				sinks = append(sinks, sink)
			}
		}
		if len(sinks) == told {
			continue
		}
		held++
		if left := s.historyLeft(now, s.oldest()); first == "" || left < soonest {
			soonest, first = left, name
		}
	}
	for name, s := range t.states.sinks {
		s.holds = holds[name]
		s.holding = s.holds > 0 || s.holding && !s.outage.began.IsZero()
	}
	if held == 0 {
		return
	}
	slices.Sort(sinks)
	for _, name := range sinks {
		if o := &t.states.sinks[name].outage; !o.told.IsZero() {
			o.told = now // the next line of it comes a minute later
		}
	}
	t.Logger.Warn("sinks hold streams up; the API server will have forgotten what changes meanwhile: bring them back, or give them queue.full: spool",
		"sinks", strings.Join(slices.Compact(sinks), ","), "streams", held, "resource", first, "historyLeft", soonest.Round(time.Second).String())
}
