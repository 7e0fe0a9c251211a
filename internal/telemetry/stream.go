package telemetry

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Watching is told that a stream's watch is open.
func (t ofStreams) Watching(stream change.Stream, from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign, s.unread = time.Now(), time.Time{}
	state := watching
	if s.comparing { // beside it
		state = snapshotting
	}
	if s.State == state && s.LastError == "" {
		return
	}
	t.tellWatching(stream, s, from)
	s.State, s.LastError, s.refused, s.failed, s.expired, s.unserved = state, "", false, time.Time{}, "", false
}

// tellWatching tells the log, unless a gap is about to be told that says so. A stream is said to have recovered where
// the log knows that it failed.
func (t ofStreams) tellWatching(stream change.Stream, s *streamState, from string) {
	switch quiet := t.states.gaps.quiet(stream); {
	case !s.failed.IsZero():
		t.Logger.Info("stream recovered", "resource", stream.String(), "resourceVersion", from, "for", time.Since(s.failed).Round(time.Second))
	case s.unserved:
		t.Logger.Debug("watching", "resource", stream.String(), "resourceVersion", from)
	case s.expired != "" && !quiet:
		t.Logger.Warn("stream failed, and recovered without a gap", "resource", stream.String(), "resourceVersion", from, "error", s.expired)
	case quiet:
		t.Logger.Debug("watching", "resource", stream.String(), "resourceVersion", from)
	default:
		t.Logger.Info("watching", "resource", stream.String(), "resourceVersion", from)
	}
}

// StreamFailed is told of a failed list or watch. The same failure is logged once, until the stream recovers.
func (t ofStreams) StreamFailed(stream change.Stream, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states.stream(stream); s.fails(err) {
		t.tellFailure(stream.String(), s, shownError(err))
	}
}

// StreamRefused is told of a list or watch that failed because the API server does not take the credentials.
func (t ofStreams) StreamRefused(stream change.Stream, err error) {
	t.StreamFailed(stream, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.stream(stream).refused = true
}

// StreamExpired is told of a failed list or watch because the API server has forgotten what changed. A gap follows as a
// rule, with which it is logged. If none does, it is logged as another failure is.
func (t ofStreams) StreamExpired(stream change.Stream, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if !s.fails(err) {
		return
	}
	s.expires(shownError(err))
	t.Logger.Debug("stream failed; a gap follows", "resource", stream.String(), "error", err)
}

// StreamUnserved is told that the API server that answered does not serve the resource. Another one may, or the stream
// is about to end, so the log is told where it lasts.
func (t ofStreams) StreamUnserved(stream change.Stream, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if !s.fails(err) || !s.failed.IsZero() {
		return
	}
	s.expires(fmt.Sprintf("%v; its objects and its position are kept", err))
	s.unserved = true
}

// tellFailure tells the log that the stream fails; the caller holds mu.
func (t *known) tellFailure(name string, s *streamState, failure string) {
	t.Logger.Warn("stream failed; retrying", "resource", name, "error", failure)
	if s.expired, s.unserved = "", false; s.failed.IsZero() {
		s.failed = time.Now()
	}
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

// Ignored is told of an update that no sink is told of.
func (t ofStreams) Ignored(rec *change.Record) {
	t.metrics.sourceIgnored.WithLabelValues(rec.Stream.Resource.String()).Inc()
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
	s := t.states.stream(*rec.Stream)
	s.misshapen.note("resource", rec.Stream.String(), "object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion,
		"withheld", rec.Withheld != "", "error", err)
	t.tellMisshapen(s, time.Now(), false)
}

// Unreadable is told of what a stream cannot read. The gap of an object is counted for each sink that takes it, when
// its record is there; that of a stream here.
func (t ofStreams) Unreadable(rec *change.Record, err error) {
	t.Logger.Error("object from the API server cannot be read; a gap record stands in its place", "resource", rec.Stream.String(),
		"object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion, "error", err)
	if rec.Op != change.Gap {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	gap := &change.GapError{Reason: rec.Snapshot.Reason, Delivered: rec.Snapshot.From, Proven: rec.ResourceVersion, Since: rec.Received}
	t.noteGap(gapOf(*rec.Stream, gap))
}
