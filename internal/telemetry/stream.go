package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Watching is told that a stream's watch is open.
func (t ofStreams) Watching(stream change.Stream, from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	state := watching
	if s.comparing { // beside it
		state = snapshotting
	}
	if s.State == state && s.LastError == "" {
		return
	}
	if s.LastError != "" {
		t.Logger.Info("stream recovered", "resource", stream.String(), "resourceVersion", from)
	} else {
		t.Logger.Info("watching", "resource", stream.String(), "resourceVersion", from)
	}
	s.State, s.LastError = state, ""
}

// StreamFailed is told of a failed list or watch. The same failure is logged once, until the stream recovers.
func (t ofStreams) StreamFailed(stream change.Stream, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	if s.LastError == err.Error() {
		return
	}
	s.State, s.LastError, s.LastErrorTime = failing, err.Error(), time.Now()
	t.Logger.Warn("stream failed; retrying", "resource", stream.String(), "error", err)
}

// Received is told of a record that was read.
func (t ofStreams) Received(rec *change.Record) {
	if t.Options.Received != nil {
		t.Options.Received(rec)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(*rec.Stream)
	if s.sign = rec.Received; s.sign.IsZero() { // a bookmark
		s.sign = time.Now()
	}
	s.Records++
	s.changed(rec)
	t.receivedOf(s, rec).Inc()
	s.bytes.Add(float64(len(rec.Object)))
}

// receivedOf is the stream's counter of the record's operation. To find a counter by its labels costs more than all
// else that is done for a record here, so it is remembered; the caller holds mu.
func (t ofStreams) receivedOf(s *streamState, rec *change.Record) prometheus.Counter {
	if s.received[rec.Op] == nil {
		resource := rec.Stream.Resource.String()
		s.received[rec.Op] = t.metrics.sourceRecords.WithLabelValues(resource, rec.Op.String())
		s.bytes = t.metrics.sourceBytes.WithLabelValues(resource)
	}
	return s.received[rec.Op]
}

// ShapeFailed is told of an object that a filter or a redaction could not be applied to.
func (t ofStreams) ShapeFailed(rec *change.Record, err error) {
	t.metrics.shapeFailures.WithLabelValues(rec.Stream.Resource.String()).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	objects, tell := t.states.stream(*rec.Stream).misshapen.fails(time.Now())
	if !tell {
		return
	}
	t.Logger.Warn("objects not filtered or redacted as configured; the next line about this resource follows in a minute at the earliest", "objects", objects, "resource", rec.Stream.String(), "object", rec.Key.String(),
		"uid", rec.UID, "resourceVersion", rec.ResourceVersion, "withheld", rec.Withheld != "", "error", err)
}

// Unreadable is told of what a stream cannot read. The gap of an object is counted for each sink that takes it, when
// its record is there; that of a stream here.
func (t ofStreams) Unreadable(rec *change.Record, err error) {
	t.Logger.Error("object from the API server cannot be read; a gap record stands in its place", "resource", rec.Stream.String(),
		"object", rec.Key.String(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion, "error", err)
	if rec.Op != change.Gap {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	gap := &change.GapError{Reason: rec.Snapshot.Reason, Delivered: rec.Snapshot.From, Proven: rec.ResourceVersion, Since: rec.Received}
	t.noteGap(gapOf(*rec.Stream, gap))
}
