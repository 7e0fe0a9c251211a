package telemetry

import (
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// beginStory remembers a gap until its end is told. One that goes on where another began, or that interrupts another
// which the log does not know of yet, is one with it.
func (t ofStreams) beginStory(stream change.Stream, snapshot *change.Snapshot, gap *gapState) {
	stories, s := &t.states.gaps, t.states.stream(stream)
	before := stories.find(stream, snapshot)
	if before != nil && (before.told.IsZero() || before.gap.From == gap.From) {
		both := *before.gap
		both.To = gap.To
		before.gap = &both
	} else {
		stories.drop(before)
		stories.all = append(stories.all, &gapStory{gap: gap, cause: s.expired, began: time.Now()})
	}
	s.expired = ""
	t.tellGaps(time.Now())
}

// endStory notes what the reconcile found. Where the log knows of the gap, it is told at once.
func (t ofStreams) endStory(g *gapStory, snapshot *change.Snapshot, objects int) {
	now := time.Now()
	g.ended, g.objects, g.counts = now, objects, snapshot.Counts
	if g.told.IsZero() {
		t.tellGaps(now)
		return
	}
	t.states.gaps.drop(g)
	line := []any{"resource", g.gap.Stream, "reason", g.gap.Reason, "resourceVersion", snapshot.ResourceVersion}
	t.Logger.Info("reconciled", append(line, g.outcome()...)...)
}

// CheckGaps tells the log of gaps, of outages whose loss is known now, and once a minute that a gap is not mended yet.
// A stream is told to fail whose history is gone and whose gap does not begin. Sinks that are behind, spools that fill,
// objects that a filter failed for and records that were trimmed or rejected are told, too.
func (t shown) CheckGaps() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellGaps(now)
	for name, s := range t.states.streams {
		wait := settling
		if !s.failed.IsZero() { // the log knows that it fails
			wait = word
		}
		if s.expired != "" && now.Sub(s.expiredAt) >= wait {
			t.tellFailure(name, s, s.expired)
		}
		t.tellMisshapen(s, now, false)
	}
	t.tellFailing(now)
	for name, s := range t.states.sinks {
		t.tellBack(name, s, now)
		t.tellBehind(name, s, now)
		t.tellTrimmed(s, now, false)
		t.tellRejected(s, now, false)
		t.tellAsked(s, now, false)
	}
	t.tellLasting(now)
}

// tellFailing names, once a minute, a stream of those that were read and cannot be now: what changes meanwhile may be
// forgotten. Of one that was never read nothing is lost.
func (t *known) tellFailing(now time.Time) {
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

// tellLasting names the oldest gap of those that are being mended, once a minute.
func (t *known) tellLasting(now time.Time) {
	var oldest *gapStory
	lasting := 0
	for _, g := range t.states.gaps.all {
		if g.told.IsZero() {
			continue
		}
		if lasting++; oldest == nil || g.began.Before(oldest.began) {
			oldest = g
		}
	}
	if oldest == nil || now.Sub(oldest.told) < word {
		return
	}
	oldest.told = now
	line := []any{"gaps", lasting, "resource", oldest.gap.Stream, "reason", oldest.gap.Reason, "for", now.Sub(oldest.began).Round(time.Second)}
	if s := t.states.streams[oldest.gap.Stream]; s != nil && s.Snapshot != nil {
		if line = append(line, "objects", s.Snapshot.Objects); s.Snapshot.Percent != nil {
			line = append(line, "percent", *s.Snapshot.Percent)
		}
	}
	t.Logger.Info("gap is still being compared", line...)
}

// TellAll tells the log of all gaps and ends of outages that it does not know of, and of later gaps at once: nobody
// calls CheckGaps any more.
func (t shown) TellAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states.gaps.ending = true
	t.tellGaps(time.Now())
	for name, s := range t.states.sinks {
		t.tellBackNow(name, s)
		t.tellTrimmed(s, time.Now(), true)
		t.tellRejected(s, time.Now(), true)
		t.tellAsked(s, time.Now(), true)
	}
	for _, s := range t.states.streams {
		t.tellMisshapen(s, time.Now(), true)
	}
}
