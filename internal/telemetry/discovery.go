package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// discoveryState is what is known of the API server's discovery on /statusz.
type discoveryState struct {
	LastRead time.Time `json:"lastRead,omitzero"`
	// of the newest attempt, or what the server could not tell
	LastError     string    `json:"lastError,omitempty"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"` // when it was heard first
	// resources and names that are not streamed, and why
	LeftOut map[string]string `json:"leftOut,omitempty"`
}

func newStreamState(stream change.Stream, late bool) *streamState {
	return &streamState{
		State: starting, objects: unknownCount, sign: time.Now(), late: late, resource: stream.Resource.String(),
		received: map[change.Op]prometheus.Counter{},
	}
}

// stream is what is known of a stream; of one that is forgotten, it is a state that nobody sees. The caller holds mu.
func (t *Telemetry) stream(stream change.Stream) *streamState {
	t.name = stream.AppendString(t.name[:0]) // and no string, which would be one a record
	if s := t.streams[string(t.name)]; s != nil {
		return s
	}
	return newStreamState(stream, true)
}

// Joined is told of a stream that comes while the process runs, before anything else of it.
func (t *Telemetry) Joined(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[stream.String()] = newStreamState(stream, true)
	t.Logger.Info("stream added", "resource", stream.String(), "version", stream.Resource.Version)
}

// Left is told of a stream that is over. Its series are removed where no other stream has the resource.
func (t *Telemetry) Left(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, stream.String())
	t.Logger.Info("stream ended: the API server no longer serves its resource", "resource", stream.String())
	resource := stream.Resource.String()
	for _, s := range t.streams {
		if s.resource == resource {
			return
		}
	}
	t.metrics.forget(resource)
}

// Waiting is told that a stream cannot be read, and why.
func (t *Telemetry) Waiting(stream change.Stream, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stream(stream)
	if s.State == waiting && s.LastError == reason {
		return
	}
	s.State, s.LastError, s.LastErrorTime, s.sign = waiting, reason, time.Now(), time.Now()
	t.Logger.Warn("stream waits", "resource", stream.String(), "reason", reason)
}

// Discovered is told what became of an attempt to read what the server serves: what is left out and why, and an error
// of all or of a part. The same error is logged once, until it is another one.
func (t *Telemetry) Discovered(leftOut map[string]string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.discovery
	if leftOut != nil {
		d.LastRead, d.LeftOut = time.Now(), leftOut
	}
	if err == nil {
		if d.LastError != "" {
			t.Logger.Info("API discovery is complete again")
		}
		d.LastError, d.LastErrorTime = "", time.Time{}
		return
	}
	if d.LastError == err.Error() {
		return
	}
	d.LastError, d.LastErrorTime = err.Error(), time.Now()
	t.Logger.Warn("API discovery is incomplete; retrying; streams of resources that are missing from it continue", "error", err)
}

// forget removes the resource's series.
func (m *metrics) forget(resource string) {
	of := prometheus.Labels{"resource": resource}
	for _, vec := range []*prometheus.CounterVec{m.sourceRecords, m.sourceBytes, m.sourceGaps, m.sinkRecords, m.reconciles, m.corrections, m.misshapen} {
		vec.DeletePartialMatch(of)
	}
}
