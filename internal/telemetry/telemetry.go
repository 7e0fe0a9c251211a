// Package telemetry makes what the pipeline and the streams tell visible: metrics for Prometheus, log lines, and the
// status, health and readiness of the process. It is the only package that imports Prometheus, and knows neither
// pipeline nor sources: its methods have the shapes of their observers' callbacks, and cmd ties them together.
package telemetry

import (
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Options says what is observed.
type Options struct {
	Version     string
	ClusterName string
	ClusterUID  string
	Streams     []change.Stream
	Sinks       []string
	Logger      *slog.Logger
	// CountObjects returns the size of a stream's inventory.
	CountObjects func(stream string) (int, error)
	// CountLetters returns how many dead letters of a sink there are; nil counts none.
	CountLetters func(sink string) (int, error)
	// Received, where set, is told of each record, too, and returns at once.
	Received func(rec *change.Record)
}

// Telemetry is what is known of the running process. Its methods may be called from any goroutine.
type Telemetry struct {
	Options
	registry *prometheus.Registry
	metrics  *metrics
	gauges   gauges
	started  time.Time

	waiting atomic.Pointer[func() map[string]time.Time] // nil before the pipeline runs

	mu        sync.Mutex // guards the following
	streams   map[string]*streamState
	name      []byte // of a stream, while it is looked for
	sinks     map[string]*sinkState
	commit    commitState
	discovery discoveryState
}

// New returns a Telemetry in which nothing has happened yet.
func New(options Options) *Telemetry {
	registry := prometheus.NewRegistry()
	t := &Telemetry{
		Options: options, registry: registry, metrics: newMetrics(registry), gauges: newGauges(), started: time.Now(),
		streams: map[string]*streamState{}, sinks: map[string]*sinkState{},
	}
	for _, stream := range options.Streams {
		t.streams[stream.String()] = newStreamState(stream, false)
	}
	for _, name := range options.Sinks {
		t.sinks[name] = &sinkState{State: starting}
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubecdc_build_info", Help: "1, with the version as label."}, []string{"version"})
	build.WithLabelValues(options.Version).Set(1)
	registry.MustRegister(t, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Watching is told that a stream's watch is open.
func (t *Telemetry) Watching(stream change.Stream, from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stream(stream)
	s.sign = time.Now()
	if s.State == watching {
		return
	}
	if s.LastError != "" {
		t.Logger.Info("stream recovered", "resource", stream.String(), "resourceVersion", from)
	} else {
		t.Logger.Info("watching", "resource", stream.String(), "resourceVersion", from)
	}
	s.State, s.LastError = watching, ""
}

// StreamFailed is told of a failed list or watch. The same failure is logged once, until the stream recovers.
func (t *Telemetry) StreamFailed(stream change.Stream, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stream(stream)
	s.sign = time.Now()
	if s.LastError == err.Error() {
		return
	}
	s.State, s.LastError, s.LastErrorTime = failing, err.Error(), time.Now()
	t.Logger.Warn("stream failed; retrying", "resource", stream.String(), "error", err)
}

// Received is told of a record that was read.
func (t *Telemetry) Received(rec *change.Record) {
	if t.Options.Received != nil {
		t.Options.Received(rec)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stream(*rec.Stream)
	if s.sign = rec.Received; s.sign.IsZero() { // a bookmark
		s.sign = time.Now()
	}
	s.Records++
	t.receivedOf(s, rec).Inc()
	s.bytes.Add(float64(len(rec.Object)))
}

// receivedOf is the stream's counter of the record's operation. To find a counter by its labels costs more than all
// else that is done for a record here, so it is remembered; the caller holds mu.
func (t *Telemetry) receivedOf(s *streamState, rec *change.Record) prometheus.Counter {
	if s.received[rec.Op] == nil {
		resource := rec.Stream.Resource.String()
		s.received[rec.Op] = t.metrics.sourceRecords.WithLabelValues(resource, rec.Op.String())
		s.bytes = t.metrics.sourceBytes.WithLabelValues(resource)
	}
	return s.received[rec.Op]
}

// Misshapen is told of an object that a filter or a redaction could not be applied to.
func (t *Telemetry) Misshapen(rec *change.Record, err error) {
	t.metrics.misshapen.WithLabelValues(rec.Stream.Resource.String()).Inc()
	t.Logger.Warn("object not filtered or redacted as configured", "resource", rec.Stream.String(), "object", rec.Key.String(),
		"uid", rec.UID, "resourceVersion", rec.ResourceVersion, "withheld", rec.Withheld != "", "error", err)
}

// Queued is told a sink's backlog.
func (t *Telemetry) Queued(name string, b Backlog) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	s.QueueRecords, s.QueueBytes, s.oldest = b.Records, b.Bytes, b.Oldest
	s.SpoolRecords, s.SpoolBytes = b.SpoolRecords, b.SpoolBytes
}

// Backlog is what a sink has not acknowledged.
type Backlog struct {
	Records                  int // in memory
	Bytes                    int
	SpoolRecords, SpoolBytes int64 // on disk; the bytes are those of the disk
	Oldest                   time.Time
}

// Coalesced is told of records that newer ones of the same object made superfluous for the sink.
func (t *Telemetry) Coalesced(name string, records int) {
	t.metrics.coalesced.WithLabelValues(name).Add(float64(records))
}

// Opened is told that a sink is open.
func (t *Telemetry) Opened(name string, replayed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	s.State, s.opened, s.Absent = open, true, false
	if !s.repeated { // else whether it works the next batch tells
		t.Logger.Info("sink open", "sink", name, "foundAfterMark", replayed)
	}
}

// Written is told of a batch that is durable.
func (t *Telemetry) Written(name string, batch []*change.Record, took time.Duration) {
	t.metrics.sinkWrite.WithLabelValues(name).Observe(took.Seconds())
	delivery := t.metrics.delivery.WithLabelValues(name)
	now := time.Now()
	for stream, part := range byStream(batch) {
		t.metrics.sinkRecords.WithLabelValues(name, stream.Resource.String()).Add(float64(len(part)))
		for _, rec := range part {
			delivery.Observe(now.Sub(rec.Received).Seconds())
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	if s.repeated {
		t.Logger.Info("sink accepts records again", "sink", name)
	}
	s.State, s.LastError, s.repeated = open, "", false
	s.Records += len(batch)
}

// byStream yields the parts of a batch whose records have their stream in common; in most batches all have.
func byStream(batch []*change.Record) iter.Seq2[*change.Stream, []*change.Record] {
	return func(yield func(*change.Stream, []*change.Record) bool) {
		for len(batch) > 0 {
			stream, n := batch[0].Stream, 1
			for n < len(batch) && batch[n].Stream == stream {
				n++
			}
			if !yield(stream, batch[:n]) {
				return
			}
			batch = batch[n:]
		}
	}
}

// SinkFailed is told of a sink's error; the sink is opened again. The same error is logged once, until a batch is
// written.
func (t *Telemetry) SinkFailed(name string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, "reopen").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	s.repeated = s.LastError == err.Error()
	s.State, s.LastError, s.LastErrorTime = failing, err.Error(), time.Now()
	if !s.repeated {
		t.Logger.Warn("sink failed; reopening it", "sink", name, "error", err)
	}
}

// Stopped is told of a sink's error that only a person can mend. The same error is logged once, until a batch is
// written.
func (t *Telemetry) Stopped(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	if s.LastError != err.Error() {
		t.Logger.Error("sink stopped, the others continue; fix the cause: the sink is retried within ten minutes, and at the next start", "sink", name, "error", err)
	}
	s.State, s.LastError, s.LastErrorTime = stopped, err.Error(), time.Now()
}

// Absent is told that a sink which is stopped, or not open yet, is waited for no more.
func (t *Telemetry) Absent(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sinks[name].Absent = true
	t.Logger.Warn("sink is absent: nothing waits for it; when it opens again, it gets a gap, the deletes that it missed, and a full snapshot", "sink", name)
}

// Retried is told of an attempt that a sink repeats by itself. The same error is logged once, until a batch is written.
func (t *Telemetry) Retried(name, reason string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sinks[name]
	if s.LastError == err.Error() {
		return
	}
	s.State, s.LastError, s.LastErrorTime = failing, err.Error(), time.Now()
	t.Logger.Warn("sink retries", "sink", name, "reason", reason, "error", err)
}

// Noticed is told how a sink works, where there is a choice, and why.
func (t *Telemetry) Noticed(name, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sinks[name].Note = text
	t.Logger.Info("sink "+text, "sink", name)
}

// LabelTopics is told how many topics a sink has made because labels said so.
func (t *Telemetry) LabelTopics(name string, topics int) {
	t.metrics.labelTopics.WithLabelValues(name).Set(float64(topics))
}

// Committed is told of what is saved.
func (t *Telemetry) Committed(batch []*change.Record, marks map[string]sink.Mark, took time.Duration) {
	t.metrics.commit.Observe(took.Seconds())
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commit = commitState{}
	for stream, part := range byStream(batch) {
		s := t.stream(*stream)
		for _, rec := range part {
			s.committed(rec, now)
		}
	}
	for name, mark := range marks {
		t.sinks[name].Mark = string(mark)
	}
}

// CommitFailed is told of a failed commit, which is tried again. It is logged once, until a commit succeeds: the text
// of a filling disk's error is another each time.
func (t *Telemetry) CommitFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.commit.LastError == "" {
		t.Logger.Error("state not saved; retrying", "error", err)
	}
	t.commit = commitState{LastError: err.Error(), LastErrorTime: now()}
}

func now() *time.Time { t := time.Now(); return &t }
