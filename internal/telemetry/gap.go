package telemetry

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// mostGaps is how many gaps of a sink are shown.
const mostGaps = 5

func gapOf(stream change.Stream, gap *change.GapError) (change.Stream, *gapState) {
	return stream, &gapState{
		Reason: gap.Reason, Stream: stream.String(), Sinks: gap.Sinks,
		From: gap.Delivered, To: gap.Proven, Since: gap.Since, Time: time.Now(),
	}
}

// noteGap counts a gap and shows it: with the stream, and with the sinks where it is theirs alone. The caller holds mu.
func (t *known) noteGap(stream change.Stream, gap *gapState) {
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

// resolve shows that what a gap stood for was delivered after all. A gap that somebody may read just now is replaced,
// not changed. The caller holds mu.
func (t *known) resolve(name string, rec *change.Record) {
	sink, stream := t.states.sinks[name], t.states.stream(*rec.Stream)
	sink.RecentGaps = slices.Clone(sink.RecentGaps)
	for i, gap := range sink.RecentGaps {
		if gap.Stream != rec.Stream.String() || gap.Object != rec.Key.Shown() || gap.To != rec.ResourceVersion {
			continue
		}
		resolved := *gap
		resolved.Resolved = time.Now()
		sink.RecentGaps[i] = &resolved
		for _, last := range []**gapState{&sink.LastGap, &stream.LastGap} {
			if *last == gap {
				*last = &resolved
			}
		}
	}
}
