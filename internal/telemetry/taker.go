package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// show shows how the sinks stand that take the stream.
func (s *streamState) show(views []listener.View) {
	if s.Sinks = nil; len(views) == 0 {
		return
	}
	sinks := make(map[string]takerState, len(views))
	s.ResourceVersion, s.confirmed = "", time.Time{}
	for i := range views {
		v := &views[i]
		sinks[v.Sink] = takerState{ResourceVersion: v.Version, Comparing: v.Comparing, Waits: v.Waits, Since: v.Since(), moved: v.Moved}
		if s.ResourceVersion == "" || v.Version != "" && change.CompareVersions(v.Version, s.ResourceVersion) < 0 {
			s.ResourceVersion = v.Version
		}
		if v.Version != "" && (s.confirmed.IsZero() || v.Moved.Before(s.confirmed)) {
			s.confirmed = v.Moved
		}
	}
	s.Sinks = sinks
}

// oldest is since when the position of the sink stands still that lags most, zero where none does.
func (s *streamState) oldest() (oldest time.Time) {
	for _, taker := range s.Sinks {
		if !taker.Since.IsZero() && (oldest.IsZero() || taker.Since.Before(oldest)) {
			oldest = taker.Since
		}
	}
	return oldest
}

// aged are the sinks with the ages of their positions.
func (s *streamState) aged(now time.Time) map[string]takerState {
	sinks := make(map[string]takerState, len(s.Sinks))
	for name, taker := range s.Sinks {
		taker.AgeSeconds = age(now, taker.moved)
		sinks[name] = taker
	}
	return sinks
}

// recount is how often objects are counted at most: that reads all of them.
const recount = time.Minute

// count keeps count of what a sink was given.
func (s *streamState) count(sinkName string, rec *change.Record) {
	c := s.counts[sinkName]
	switch {
	case c == nil || !rec.Op.OfObject():
	case rec.Snapshot != nil:
		c.vague = true
	case rec.Op == change.Added:
		c.n++
	case rec.Op == change.Deleted:
		c.n--
	}
}

// mostObjects is how many objects the sink has that has most, unknownCount where nobody has counted them.
func (s *streamState) mostObjects() int {
	most := unknownCount
	for _, c := range s.counts {
		most = max(most, c.n)
	}
	return most
}
