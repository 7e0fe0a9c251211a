package telemetry

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

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

// mostTold is how many gaps one line names.
const mostTold = 20
