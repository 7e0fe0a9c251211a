package telemetry

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Check tells the log of what lasts: of sinks that hold streams up, of streams that fail, and of what happens often. A
// stream is told to fail whose history is gone and whose gap does not begin.
func (t *Telemetry) Check() {
	t.look()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellHeld(now)
	t.tellStarted()
	for name, s := range t.states.streams {
		wait := settling
		if !s.failed.IsZero() { // the log knows that it fails
			wait = word
		}
		if s.expired != "" && now.Sub(s.expiredAt) >= wait {
			t.tellFailure(name, s, s.expired)
		}
	}
	t.tellFailing(now)
	t.tellRare(now, false)
}

// tellFailing names, once a minute, a stream of those that were read and cannot be now: what changes meanwhile may be
// forgotten. Of one that was never read nothing is lost.
func (t *Telemetry) tellFailing(now time.Time) {
	failing, longest := 0, ""
	for _, name := range slices.Sorted(maps.Keys(t.states.streams)) {
		s := t.states.streams[name]
		if s.failed.IsZero() || s.ResourceVersion == "" {
			continue
		}
		if failing++; longest == "" || s.failed.Before(t.states.streams[longest].failed) {
			longest = name
		}
	}
	if failing == 0 {
		return
	}
	s := t.states.streams[longest]
	if s.failed.After(t.states.failing) { // nothing was told of it but its begin
		t.states.failing = s.failed
	}
	if now.Sub(t.states.failing) < word {
		return
	}
	t.states.failing = now
	t.Logger.Warn("streams still fail", "streams", failing, "resource", longest, "error", s.LastError,
		"since", s.failed.UTC().Format(time.RFC3339), "for", now.Sub(s.failed).Round(time.Second),
		"historyLeft", s.historyLeft(now, time.Time{}).Round(time.Second).String())
}

// TellAll tells the log of all that it does not know of, and of what comes later at once: nobody calls Check any more.
func (t *Telemetry) TellAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.ending = true
	t.tellRare(time.Now(), true)
}

// Joined is told of a stream that comes while the process runs, before anything else of it.
func (t *Telemetry) Joined(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.streams[stream.String()] = t.newStream(stream, true)
	t.Logger.Info("stream added", "resource", stream.String(), "version", stream.Resource.Version)
}

// StreamOver is told of a stream that is over. Its series are removed where no other stream has the resource.
func (t *Telemetry) StreamOver(stream change.Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states.streams, stream.String())
	t.Logger.Info("stream ended: the definition of its resource was deleted", "resource", stream.String())
	resource := stream.Resource.String()
	for _, s := range t.states.streams {
		if s.resource == resource {
			return
		}
	}
	m := t.metrics
	for _, vec := range []*prometheus.CounterVec{m.sourceRecords, m.sourceBytes, m.sourceGaps, m.sinkRecords, m.snapshots, m.corrections, m.shapeFailures, m.sourceIgnored} {
		vec.DeletePartialMatch(prometheus.Labels{"resource": resource})
	}
}

// Waiting is told that a stream cannot be read, and why.
func (t *Telemetry) Waiting(stream change.Stream, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if s.State == waiting && s.LastError == reason {
		return
	}
	s.State, s.LastError, s.LastErrorTime, s.sign = waiting, reason, time.Now(), time.Now()
	s.failed, s.told, s.expired = s.sign, true, ""
	s.Snapshot = nil // it begins anew when the stream is read again
	t.Logger.Warn("stream waits", "resource", stream.String(), "reason", reason)
}

// Discovered is told what became of an attempt to read what the server serves: what is left out and why, and an error
// of all or of a part. The same error is logged once, until it is another one.
func (t *Telemetry) Discovered(leftOut map[string]string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.states.discovery
	if leftOut != nil {
		d.LastRead, d.LeftOut = time.Now(), leftOut
	}
	now := TroubleOf(err)
	switch {
	case now.LastError == d.LastError:
		return
	case err == nil:
		t.Logger.Info("API discovery is complete again")
	default:
		t.Logger.Warn("API discovery is incomplete; retrying; streams of resources that are missing from it continue", "error", err)
	}
	d.Trouble = now
}

// maxCorrections is how many corrections of one comparison are logged, each with its object.
const maxCorrections = 20

// Comparing is told that a comparison starts, and of the gap that made it necessary.
func (t *Telemetry) Comparing(stream change.Stream, snapshot *change.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign, s.corrections = time.Now(), 0
	s.beginSnapshot(snapshot)
	if !snapshot.Reason.Full() {
		s.State, s.comparing = snapshotting, true
	}
	if snapshot.Reason == change.Epoch {
		t.ClusterUID = snapshot.Epoch
	}
	t.Logger.Debug("snapshot begins", "resource", stream.String(), "reason", snapshot.Reason, "sinks", snapshot.Sinks,
		"from", snapshot.From, "resourceVersion", snapshot.ResourceVersion)
	if !snapshot.IsGap() {
		return
	}
	gap := stateOf(stream, snapshot)
	t.noteGap(stream, gap)
	if gap.Reason == change.Removed { // StreamOver says it
		return
	}
	line := []any{"resource", gap.Stream, "reason", gap.Reason, "lastDelivered", gap.From, "resourceVersion", gap.To}
	if !gap.Since.IsZero() {
		line = append(line, "since", gap.Since)
	}
	if gap.Sinks != nil {
		line = append(line, "sinks", gap.Sinks)
	}
	if s.expired != "" {
		line = append(line, "error", s.expired)
		s.expired = ""
	}
	t.rarely(rare{fmt.Sprint(gap.Stream, " ", gap.Reason, " ", gap.Sinks), slog.LevelWarn, "gap: intermediate changes may be missing", "gaps"}, line...)
}

// Corrected is told of a difference that a full snapshot found although no watch told of it. The first of each
// comparison are logged; Compared says how many there were.
func (t *Telemetry) Corrected(stream change.Stream, c change.Correction) {
	t.metrics.corrections.WithLabelValues(stream.Resource.String(), c.Op.String()).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if s.corrections++; s.corrections > maxCorrections {
		return
	}
	t.Logger.Warn("drift: the server has a change that no watch reported; it is corrected", "resource", stream.String(), "reason", c.Reason,
		"op", c.Op.String(), "object", c.Key.Shown(), "uid", c.UID, "resourceVersion", c.Version, "deliveredUid", c.Had, "deliveredResourceVersion", c.HadVersion)
}

// Compared is told that a comparison is complete.
func (t *Telemetry) Compared(stream change.Stream, snapshot *change.Snapshot) {
	t.metrics.snapshots.WithLabelValues(stream.Resource.String(), string(snapshot.Reason)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	given := s.endSnapshot(snapshot.Sinks)
	if !snapshot.Reason.Full() { // a watch is open beside it, or is opened next
		if s.comparing = false; s.State == snapshotting && snapshot.Reason.Beside() {
			s.State = watching
		}
	}
	s.LastSnapshot = &completeSnapshot{
		Reason: snapshot.Reason, Sinks: snapshot.Sinks, ResourceVersion: snapshot.ResourceVersion, Counts: snapshot.Counts, Limits: snapshot.Limits, Time: time.Now(),
	}
	if s.corrections > 0 {
		t.Logger.Warn("drift was found and corrected", "resource", stream.String(), "reason", snapshot.Reason, "corrections", s.corrections)
	}
	line := []any{"resource", stream.String(), "reason", snapshot.Reason, "resourceVersion", snapshot.ResourceVersion}
	if snapshot.Sinks != nil {
		line = append(line, "sinks", snapshot.Sinks)
	}
	counts := &snapshot.Counts
	line = append(line, "replaced", counts.Replaced, "deleted", counts.Deleted, "synced", counts.Synced)
	if given != nil {
		line = append(line, "objects", given.Objects, "for", time.Since(given.Since).Round(time.Millisecond))
	}
	if snapshot.Reason != change.Removed {
		t.rarely(rare{fmt.Sprint(stream, " ", snapshot.Reason, " ", snapshot.Sinks), slog.LevelInfo, "snapshot complete", "snapshots"}, line...)
	}
}

// Listed is told of a page of a snapshot's list: its objects, and how many remain, below 0 where that is not known.
func (t *Telemetry) Listed(stream change.Stream, n int, remaining int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	if s.Snapshot == nil {
		return
	}
	next := *s.Snapshot
	next.Objects += n
	switch all := int64(next.Objects) + remaining; {
	case remaining == 0:
		next.Percent = new(100)
	case remaining > 0:
		next.Percent = new(int(int64(next.Objects) * 100 / all)) // only all is a hundred
	case next.expected > 0: // a server that has selectors does not say: as many are expected as there were
		next.Percent = new(min(next.Objects, next.expected) * 100 / (next.expected + 1))
	}
	s.Snapshot = &next
	if now := time.Now(); remaining != 0 && now.Sub(s.Snapshot.told) >= goesOnEvery {
		s.Snapshot.told = now
		line := []any{"resource", stream.String(), "reason", s.Snapshot.Reason, "objects", s.Snapshot.Objects}
		if remaining >= 0 {
			line = append(line, "remaining", remaining)
		}
		t.Logger.Info("snapshot goes on", append(line, "perSecond", int(float64(s.Snapshot.Objects)/now.Sub(s.Snapshot.Since).Seconds()))...)
	}
}

// goesOnEvery is how often the log is told of a snapshot that is being read.
const goesOnEvery = 10 * time.Second

// Abandoned is told that a full snapshot is read no more, although it is not complete.
func (t *Telemetry) Abandoned(stream change.Stream, snapshot *change.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	given := s.given
	s.endSnapshot(snapshot.Sinks)
	s.given = given
	t.Logger.Info("snapshot ended before it was complete", "resource", stream.String(), "reason", snapshot.Reason, "sinks", snapshot.Sinks)
}

// Progress is how far a snapshot for one sink is.
type Progress struct {
	Read    bool // to its end: the sink may still be given the rest
	Objects int
	Percent *int // nil is not known
}

// Progress of the snapshot that the stream is read for, or was read for last, false where that is another one.
func (t *Telemetry) Progress(stream string, owed change.Owed) (p Progress, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.streams[stream]
	if s == nil {
		return p, false
	}
	for _, of := range []*snapshotState{s.Snapshot, s.given} {
		if of != nil && of.Reason == owed.Reason && of.Limits == owed.Limits && (of.Sinks == nil || slices.Contains(of.Sinks, owed.Sink)) {
			return Progress{Read: of == s.given, Objects: of.Objects, Percent: of.Percent}, true
		}
	}
	return p, false
}
