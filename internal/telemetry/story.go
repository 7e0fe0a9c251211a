package telemetry

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// mostTold is how many gaps one line names.
const mostTold = 20

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

// breakOff tells of a gap whose reconcile goes on no more, and forgets it.
func (t *known) breakOff(g *gapStory) {
	if g.told.IsZero() {
		t.tellTogether([]*gapStory{g}, time.Now())
	}
	t.states.gaps.drop(g)
}

// breakOffAll does so with all gaps of the stream.
func (t *known) breakOffAll(stream change.Stream) {
	for _, g := range slices.Clone(t.states.gaps.all) {
		if g.gap.Stream == stream.String() {
			t.breakOff(g)
		}
	}
}

// tellGaps tells the log of gaps, if it is time; the caller holds mu.
func (t *known) tellGaps(now time.Time) {
	if !t.states.gaps.due(now) {
		return
	}
	mended, open := t.states.gaps.untold()
	t.tellTogether(mended, now)
	t.tellTogether(open, now)
	for _, g := range mended { // of the others the end is told, too
		t.states.gaps.drop(g)
	}
}

// tellTogether tells of gaps in as few lines as name all of them.
func (t *known) tellTogether(gaps []*gapStory, now time.Time) {
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
	for name, s := range t.states.sinks {
		t.tellBack(name, s, now)
		t.tellBehind(name, s, now)
		t.tellTrimmed(s, now, false)
		t.tellRejected(s, now, false)
	}
	t.tellLasting(now)
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
	}
	for _, s := range t.states.streams {
		t.tellMisshapen(s, time.Now(), true)
	}
}
