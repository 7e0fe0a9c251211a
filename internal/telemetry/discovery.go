package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Joined is told of a stream that comes while the process runs, before anything else of it.
func (t ofStreams) Joined(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.streams[stream.String()] = t.newStream(stream, true)
	t.Logger.Info("stream added", "resource", stream.String(), "version", stream.Resource.Version)
}

// Left is told of a stream that is over. Its series are removed where no other stream has the resource.
func (t ofStreams) Left(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breakOffAll(stream)
	delete(t.states.streams, stream.String())
	t.Logger.Info("stream ended: the definition of its resource was deleted", "resource", stream.String())
	resource := stream.Resource.String()
	for _, s := range t.states.streams {
		if s.resource == resource {
			return
		}
	}
	t.metrics.forget(resource)
}

// Waiting is told that a stream cannot be read, and why.
func (t ofStreams) Waiting(stream change.Stream, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if s.State == waiting && s.LastError == reason {
		return
	}
	s.State, s.LastError, s.LastErrorTime, s.sign = waiting, reason, time.Now(), time.Now()
	s.failed, s.expired = s.sign, ""
	t.breakOffAll(stream)
	s.Snapshot = nil // it begins anew when the stream is read again
	t.Logger.Warn("stream waits", "resource", stream.String(), "reason", reason)
}

// Discovered is told what became of an attempt to read what the server serves: what is left out and why, and an error
// of all or of a part. The same error is logged once, until it is another one.
func (t ofStreams) Discovered(leftOut map[string]string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.states.discovery
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
	if d.LastError == shownError(err) {
		return
	}
	d.LastError, d.LastErrorTime = shownError(err), time.Now()
	t.Logger.Warn("API discovery is incomplete; retrying; streams of resources that are missing from it continue", "error", err)
}

// forget removes the resource's series.
func (m *metrics) forget(resource string) {
	of := prometheus.Labels{"resource": resource}
	for _, vec := range []*prometheus.CounterVec{m.sourceRecords, m.sourceBytes, m.sourceGaps, m.sinkRecords, m.reconciles, m.corrections, m.shapeFailures, m.sourceIgnored} {
		vec.DeletePartialMatch(of)
	}
}
