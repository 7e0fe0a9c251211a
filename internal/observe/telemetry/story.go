package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Check tells the log of what lasts: of sinks that hold streams up, of gaps, and of streams that fail. A stream is told
// to fail whose history is gone and whose gap does not begin. Objects that a filter failed for, and records that were
// trimmed or rejected are told, too.
func (t *Telemetry) Check() {
	t.look()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellHeld(now)
	t.tellStories(now)
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

// TellAll tells the log of all gaps that it does not know of, and of later ones at once: nobody calls Check any more.
func (t *Telemetry) TellAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.ending = true
	t.tellStories(time.Now())
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
	t.breakOff(stream, nil)
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
	t.breakOff(stream, nil)
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
	of := stateOf(stream, snapshot)
	if snapshot.IsGap() {
		t.noteGap(stream, of)
	}
	if snapshot.Reason != change.Removed { // StreamOver says it
		t.beginStory(stream, snapshot, of)
	}
}

// beginStory remembers a comparison until its end is told. One that goes on where another began, or that interrupts
// another which the log does not know of yet, is one with it.
func (t *Telemetry) beginStory(stream change.Stream, snapshot *change.Snapshot, of *gapState) {
	s, mends := t.states.stream(stream), snapshot.IsGap()
	before := t.states.storyOf(stream, snapshot)
	if before != nil && (before.told.IsZero() || before.of.From == of.From) {
		both := *before.of
		both.To = of.To
		before.of, before.mends = &both, before.mends || mends
	} else {
		t.states.drop(before)
		t.states.stories = append(t.states.stories, &story{of: of, mends: mends, cause: s.expired, began: time.Now()})
	}
	if mends {
		s.expired = ""
	}
	t.tellStories(time.Now())
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
	objects := s.endSnapshot(snapshot.Sinks)
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
	t.Logger.Debug("snapshot complete", "resource", stream.String(), "reason", snapshot.Reason, "resourceVersion", snapshot.ResourceVersion)
	g := t.states.storyOf(stream, snapshot)
	if g == nil {
		return
	}
	g.ended, g.objects, g.counts = time.Now(), objects, snapshot.Counts
	if g.told.IsZero() {
		t.tellStories(g.ended)
		return
	}
	t.states.drop(g) // the log knows of it, and is told its end at once
	line := []any{"resource", g.of.Stream, "reason", g.of.Reason, "resourceVersion", snapshot.ResourceVersion}
	t.Logger.Info("snapshot complete", append(line, g.outcome()...)...)
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
	t.breakOff(stream, snapshot)
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

// breakOff tells of a gap whose comparison goes on no more, and forgets it: that of the snapshot, or all of the stream
// with nil.
func (t *Telemetry) breakOff(stream change.Stream, snapshot *change.Snapshot) {
	for _, g := range slices.Clone(t.states.stories) {
		if g.of.Stream != stream.String() || snapshot != nil && !g.is(stream, snapshot) {
			continue
		}
		if g.mends && g.told.IsZero() {
			t.tellGaps([]*story{g}, time.Now())
		}
		t.states.drop(g)
	}
}

// tellStories tells the log of comparisons, if it is time: when all have ended and no other has come for a moment, or
// when one has lasted. The caller holds mu.
func (t *Telemetry) tellStories(now time.Time) {
	untold, _ := divide(t.states.stories, func(g *story) bool { return g.told.IsZero() })
	ended, open := divide(untold, func(g *story) bool { return !g.ended.IsZero() })
	oldest, newest := now, time.Time{}
	for _, g := range slices.Concat(ended, open) {
		oldest = slices.MinFunc([]time.Time{oldest, g.began}, time.Time.Compare)
		newest = slices.MaxFunc([]time.Time{newest, g.began, g.ended}, time.Time.Compare)
	}
	isOver := len(open) == 0 && now.Sub(newest) >= patience
	if !t.states.ending && !isOver && now.Sub(oldest) < settling {
		return
	}
	for _, some := range [][]*story{ended, open} {
		gaps, others := divide(some, func(g *story) bool { return g.mends })
		t.tellGaps(gaps, now)
		t.tellComparisons(others, now)
	}
	for _, g := range ended { // of the others the end is told, too
		t.states.drop(g)
	}
}

// tellGaps tells of gaps in as few lines as name all of them.
func (t *Telemetry) tellGaps(gaps []*story, now time.Time) {
	const text = "gap: intermediate changes may be missing"
	for some := range slices.Chunk(gaps, mostTold) {
		for _, g := range some {
			g.told = now
		}
		if len(some) == 1 {
			t.Logger.Warn(text, some[0].attributes()...)
			continue
		}
		t.Logger.Warn(text, "streams", len(some), "gaps", fmt.Sprint(some))
	}
}

// mostTold is how many gaps one line names.
const mostTold = 20

// tellComparisons tells of comparisons without a gap, which have all ended or have not, in one line for each reason.
func (t *Telemetry) tellComparisons(all []*story, now time.Time) {
	for len(all) > 0 {
		var same []*story
		first := *all[0].of
		same, all = divide(all, func(g *story) bool { return g.of.Reason == first.Reason })
		sum, streams, sinks := story{of: &first, began: now}, map[string]bool{}, map[string]bool{}
		for _, g := range same {
			g.told, sum.ended, streams[g.of.Stream] = now, g.ended, true
			for _, name := range g.of.Sinks {
				sinks[name] = true
			}
			if g.began.Before(sum.began) {
				sum.began = g.began
			}
			sum.objects += g.objects
			sum.counts.Replaced += g.counts.Replaced
			sum.counts.Deleted += g.counts.Deleted
			sum.counts.Synced += g.counts.Synced
		}
		first.Sinks = slices.Sorted(maps.Keys(sinks))
		line := sum.attributes()
		if len(streams) > 1 {
			if line = []any{"streams", len(streams), "reason", first.Reason, "sinks", first.Sinks}; !sum.ended.IsZero() {
				line = append(line, sum.outcome()...)
			}
		}
		if sum.ended.IsZero() {
			t.Logger.Info("snapshot begins", line...)
		} else {
			t.Logger.Info("snapshot complete", line...)
		}
	}
}
