package telemetry

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Watching is told that a stream's watch is open.
func (t *Telemetry) Watching(stream change.Stream, from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign, s.unread, s.outage = time.Now(), time.Time{}, Failed
	t.tellOver()
	state := watching
	if s.comparing { // beside it
		state = snapshotting
	}
	if s.State == state && s.LastError == "" {
		return
	}
	// A stream is said to have recovered where a line says that it failed. What a comparison mends needs no line.
	switch {
	case s.told:
		t.Logger.Info("stream recovered", "resource", stream.String(), "resourceVersion", from, "for", time.Since(s.failed).Round(time.Second))
	case s.expired != "" && !s.unserved && !s.comparing:
		t.Logger.Warn("stream failed, and recovered without a gap", "resource", stream.String(), "resourceVersion", from, "error", s.expired)
	default:
		t.Logger.Debug("watching", "resource", stream.String(), "resourceVersion", from)
	}
	s.State, s.LastError, s.failed, s.told, s.expired, s.unserved = state, "", time.Time{}, false, "", false
	t.tellStarted()
}

// tellStarted tells the log once that the streams of the start are watched: all but those that cannot be, of which
// there are other lines. The caller holds mu.
func (t *Telemetry) tellStarted() {
	all, watched := 0, 0
	for _, s := range t.states.streams {
		switch {
		case t.states.started || s.State == starting && !s.late:
			return
		case s.late:
			continue
		case s.State == watching || s.State == snapshotting:
			watched++
		}
		all++
	}
	if t.states.started = watched > 0; t.states.started {
		t.Logger.Info("watching", "streams", watched, "of", all)
	}
}

// StreamFailed is told of a failed list or watch. The same failure is logged once, until the stream recovers; of an
// outage the log has one line, however many streams fail so. One that a gap follows as a rule is logged with that, or
// as another failure where none does. That a resource is not served is told where it lasts.
func (t *Telemetry) StreamFailed(stream change.Stream, why Failure, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	isNew := s.fails(err)
	if why < outages {
		s.outage = why
	}
	switch {
	case !isNew:
	case why == Expired:
		s.expires(s.LastError)
		t.Logger.Debug("stream failed; a gap follows", "resource", stream.String(), "error", err)
	case why == Unserved && s.failed.IsZero():
		s.expires(fmt.Sprintf("%v; its objects and its position are kept", err))
		s.unserved = true
	case why == Failed:
		t.tellFailure(stream.String(), s, s.LastError)
	case why == Refused, why == Unreachable:
		if since := &t.states.outages[why]; since.IsZero() {
			*since = s.sign
			begins, _ := why.lines()
			t.Logger.Warn(begins, "resource", stream.String(), "error", s.LastError)
		}
		s.noted()
	}
}

// tellOver tells the log of outages that no stream is in any more; the caller holds mu.
func (t *Telemetry) tellOver() {
	for why := range outages {
		is := func(s *streamState) bool { return s.outage == why }
		since := &t.states.outages[why]
		if since.IsZero() || slices.ContainsFunc(slices.Collect(maps.Values(t.states.streams)), is) {
			continue
		}
		_, ends := why.lines()
		t.Logger.Info(ends, "for", time.Since(*since).Round(time.Second))
		*since = time.Time{}
	}
}

// tellFailure tells the log that the stream fails; the caller holds mu.
func (t *Telemetry) tellFailure(name string, s *streamState, failure string) {
	t.Logger.Warn("stream failed; retrying", "resource", name, "error", failure)
	s.told = true
	s.noted()
}

// Received is told of a record that was read.
func (t *Telemetry) Received(rec *change.Record) {
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
	if rec.Snapshot == nil && rec.Op.OfObject() {
		s.pace.note(rec.Received)
	}
	// To find a counter by its labels costs more than all else that is done for a record here, so it is remembered.
	if s.received[rec.Op] == nil {
		s.received[rec.Op] = t.metrics.sourceRecords.WithLabelValues(s.resource, rec.Op.String())
		s.bytes = t.metrics.sourceBytes.WithLabelValues(s.resource)
	}
	s.received[rec.Op].Inc()
	s.bytes.Add(float64(len(rec.Object)))
}

// Ignored is told of an update that no sink is told of.
func (t *Telemetry) Ignored(rec *change.Record) {
	t.metrics.sourceIgnored.WithLabelValues(rec.Stream.Resource.String()).Inc()
}

// ShapeFailed is told of an object that a filter or a redaction could not be applied to.
func (t *Telemetry) ShapeFailed(rec *change.Record, err error) {
	t.metrics.shapeFailures.WithLabelValues(rec.Stream.Resource.String()).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rarely(rare{
		rec.Stream.String(), slog.LevelWarn, "objects not filtered or redacted as configured; the next line about this resource follows in a minute at the earliest", "objects",
	}, "resource", rec.Stream.String(), "object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion, "withheld", rec.Withheld != "", "error", err)
}

// Unreadable is told of what a stream cannot read. The gap of an object is counted for each sink that takes it, when
// its record is there; that of a stream here.
func (t *Telemetry) Unreadable(rec *change.Record, err error) {
	t.Logger.Error("object from the API server cannot be read; a gap record stands in its place", "resource", rec.Stream.String(),
		"object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion, "error", err)
	if rec.Op != change.Gap {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	gap := stateOf(*rec.Stream, rec.Snapshot)
	gap.To, gap.Since = rec.ResourceVersion, rec.Received
	t.noteGap(*rec.Stream, gap)
}

// Rejected is told of a record that a sink will never take: a gap of that sink. The log names one a minute, and how
// many there were: who may make objects must not fill it.
func (t *Telemetry) Rejected(name string, rec *change.Record, reason string, err error) {
	t.metrics.sinkRejected.WithLabelValues(name, reason).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	line := rare{name, slog.LevelError, "record rejected; a gap record stands in its place", "records"}
	t.rarely(line, append(ofObject(name, rec), "reason", reason, "error", err)...)
	t.noteGap(*rec.Stream, &gapState{
		Reason: change.Policy, Stream: rec.Stream.String(), Sinks: []string{name}, Object: rec.Key.Shown(), Rejected: reason,
		From: rec.ResourceVersion, To: rec.ResourceVersion, Since: rec.Received, Time: time.Now(),
	})
}

// NotKept is told why a dead letter could not be kept: the sink waits for it. The same error is logged once, until a
// batch is written.
func (t *Telemetry) NotKept(name string, err error) {
	t.metrics.sinkRetries.WithLabelValues(name, "dead_letter").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.sinks[name]
	if s.LastError != shownError(err) {
		t.Logger.Error("dead letter cannot be kept; the sink waits and retries", "sink", name, "error", err)
	}
	s.State, s.Trouble = failing, TroubleOf(err)
}

// Dropped is told that a rejected record was not kept. It is logged once.
func (t *Telemetry) Dropped(name string) {
	t.metrics.lettersDropped.WithLabelValues(name).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states.sinks[name]; !s.lettersFull {
		s.lettersFull = true
		t.Logger.Error("dead letters have reached their limit; rejected records are not kept any more, and their gap records say so: "+
			"send or delete letters, or raise deadLetter.bytes of the sink", "sink", name)
	}
}

// Trimmed is told of a durable record of which something was cut. The log names one a minute, and how many there were.
func (t *Telemetry) Trimmed(name string, rec *change.Record) {
	t.metrics.sinkTrimmed.WithLabelValues(name).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	line := rare{name, slog.LevelWarn, "record trimmed to fit into the sink", "records"}
	t.rarely(line, append(ofObject(name, rec), "trimmed", rec.Remarks.LeftOut())...)
}

// Replayed is told of a dead letter that was sent again, or why it was not. It shows that what a gap stood for was
// delivered after all.
func (t *Telemetry) Replayed(name string, rec *change.Record, err error) {
	if err != nil {
		t.Logger.Warn("dead letter not sent again", append(ofObject(name, rec), "letter", rec.Replay.Letter, "error", err)...)
		return
	}
	t.metrics.replayed.WithLabelValues(name).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	sink, stream := t.states.sinks[name], t.states.stream(*rec.Stream)
	sink.RecentGaps = slices.Clone(sink.RecentGaps)
	for i, gap := range sink.RecentGaps {
		if gap.Stream != rec.Stream.String() || gap.Object != rec.Key.Shown() || gap.To != rec.ResourceVersion {
			continue
		}
		resolved := *gap // which somebody may read just now
		resolved.Resolved = time.Now()
		sink.RecentGaps[i] = &resolved
		for _, last := range []**gapState{&sink.LastGap, &stream.LastGap} {
			if *last == gap {
				*last = &resolved
			}
		}
	}
	t.Logger.Info("dead letter sent again", append(ofObject(name, rec), "letter", rec.Replay.Letter)...)
}

// ofObject names a record of a sink in the log.
func ofObject(sinkName string, rec *change.Record) []any {
	return []any{"sink", sinkName, "resource", rec.Stream.String(), "object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion}
}

// mostGaps is how many gaps of a sink are shown.
const mostGaps = 5

// stateOf is what the snapshot compares, or the gap that it mends.
func stateOf(stream change.Stream, snapshot *change.Snapshot) *gapState {
	return &gapState{
		Reason: snapshot.Reason, Stream: stream.String(), Sinks: snapshot.Sinks,
		From: snapshot.From, To: snapshot.ResourceVersion, Since: snapshot.Since, Time: time.Now(),
	}
}

// noteGap counts a gap and shows it: with the stream, and with the sinks where it is theirs alone. The caller holds mu.
func (t *Telemetry) noteGap(stream change.Stream, gap *gapState) {
	t.metrics.sourceGaps.WithLabelValues(stream.Resource.String(), string(gap.Reason)).Inc()
	s := t.states.stream(stream)
	s.Gaps++
	s.LastGap = gap
	for _, name := range gap.Sinks {
		of := t.states.sinks[name]
		of.Gaps++
		of.LastGap = gap
		of.RecentGaps = slices.Concat([]*gapState{gap}, of.RecentGaps[:min(len(of.RecentGaps), mostGaps-1)])
	}
}
