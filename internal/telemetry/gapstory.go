package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// settling is how long a gap may be kept from the log, so that one line can say how it ended, and of all that came with
// it.
const settling = 15 * time.Second

// gapStory is a gap, with the reconcile that mends it, of which the log has not been told the end.
type gapStory struct {
	gap          *gapState
	cause        string // the failure that it began with, "" where there was none
	began, ended time.Time
	told         time.Time // the last line of it; zero is none yet
	objects      int       // that were listed
	counts       change.Counts
}

// moved is when something happened last.
func (g *gapStory) moved() time.Time {
	if g.ended.IsZero() {
		return g.began
	}
	return g.ended
}

// of says whether the snapshot mends the gap.
func (g *gapStory) of(stream change.Stream, snapshot *change.Snapshot) bool {
	return g.ended.IsZero() && g.gap.Stream == stream.String() && g.gap.Reason == snapshot.Reason && slices.Equal(g.gap.Sinks, snapshot.Sinks)
}

// attributes are those of a line about this gap alone.
func (g *gapStory) attributes() []any {
	line := []any{"resource", g.gap.Stream, "reason", g.gap.Reason, "lastDelivered", g.gap.From, "resourceVersion", g.gap.To}
	if !g.gap.Since.IsZero() {
		line = append(line, "since", g.gap.Since)
	}
	if g.gap.Sinks != nil {
		line = append(line, "sinks", g.gap.Sinks)
	}
	if g.cause != "" {
		line = append(line, "error", g.cause)
	}
	if g.ended.IsZero() {
		return line
	}
	return append(line, g.outcome()...)
}

// outcome is what the reconcile found.
func (g *gapStory) outcome() []any {
	line := []any{"objects", g.objects, "replaced", g.counts.Replaced, "deleted", g.counts.Deleted}
	if g.gap.Reason.Full() {
		line = append(line, "synced", g.counts.Synced)
	}
	return append(line, "for", g.ended.Sub(g.began).Round(time.Millisecond))
}

// String is the gap in a line about several.
func (g *gapStory) String() string {
	text := fmt.Sprintf("%s(%s %s-%s", g.gap.Stream, g.gap.Reason, g.gap.From, g.gap.To)
	if g.gap.Sinks != nil {
		text += " of " + strings.Join(g.gap.Sinks, ",")
	}
	if !g.ended.IsZero() {
		text += fmt.Sprintf(": %d replaced, %d deleted", g.counts.Replaced, g.counts.Deleted)
	}
	return text + ")"
}

// gapStories are the gaps that go on, and those whose end is told in a moment. Nothing else is remembered of them.
type gapStories struct {
	all    []*gapStory
	ending bool // nobody looks any more: what comes is told at once
}

// find returns the story that the snapshot belongs to, nil where there is none.
func (all *gapStories) find(stream change.Stream, snapshot *change.Snapshot) *gapStory {
	for _, g := range all.all {
		if g.of(stream, snapshot) {
			return g
		}
	}
	return nil
}

// quiet says whether the log is about to be told of a gap of the stream, and so not of the watch that goes on beside
// its reconcile.
func (all *gapStories) quiet(stream change.Stream) bool {
	return slices.ContainsFunc(all.all, func(g *gapStory) bool {
		return g.gap.Stream == stream.String() && g.gap.Reason.Beside() && g.gap.Sinks == nil && g.told.IsZero()
	})
}

// untold are the gaps that the log knows nothing of: those that are mended, and those that are not yet.
func (all *gapStories) untold() (mended, open []*gapStory) {
	for _, g := range all.all {
		switch {
		case !g.told.IsZero():
		case g.ended.IsZero():
			open = append(open, g)
		default:
			mended = append(mended, g)
		}
	}
	return mended, open
}

// due says whether the log is to be told now: when all are mended and no other has come for a moment, or when it has
// lasted.
func (all *gapStories) due(now time.Time) bool {
	mended, open := all.untold()
	untold := append(mended, open...)
	if len(untold) == 0 || all.ending {
		return len(untold) > 0
	}
	oldest, newest := untold[0].began, untold[0].moved()
	for _, g := range untold[1:] {
		if g.began.Before(oldest) {
			oldest = g.began
		}
		if g.moved().After(newest) {
			newest = g.moved()
		}
	}
	return now.Sub(oldest) >= settling || len(open) == 0 && now.Sub(newest) >= patience
}

// drop forgets the gap.
func (all *gapStories) drop(g *gapStory) {
	all.all = slices.DeleteFunc(all.all, func(other *gapStory) bool { return other == g })
}

// gapState is a change.GapError as it is shown.
type gapState struct {
	Reason change.Reason `json:"reason"`
	Stream string        `json:"stream"`
	Sinks  []string      `json:"sinks,omitempty"`  // none is all
	Object string        `json:"object,omitempty"` // of a gap of reason policy
	From   string        `json:"lastDelivered"`
	To     string        `json:"resourceVersion"`
	Since  time.Time     `json:"since,omitzero"`
	Time   time.Time     `json:"time"`
	// Of a gap of reason policy.
	Rejected string    `json:"rejected,omitempty"` // why the sink refused the record
	Resolved time.Time `json:"resolved,omitzero"`  // when its dead letter was delivered after all
}
