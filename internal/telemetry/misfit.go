package telemetry

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// tellMisshapen tells the log of the objects of a stream that a filter or a redaction failed for; the caller holds mu.
func (t *known) tellMisshapen(s *streamState, now time.Time, last bool) {
	if n, example := s.misshapen.take(now, last); n > 0 {
		t.Logger.Warn("objects not filtered or redacted as configured; the next line about this resource follows in a minute at the earliest",
			slices.Concat([]any{"objects", n}, example)...)
	}
}

// tellTrimmed tells the log of the records that were cut for the sink; the caller holds mu.
func (t *known) tellTrimmed(s *sinkState, now time.Time, last bool) {
	if line := s.trimmed.records(now, last); line != nil {
		t.Logger.Warn("record trimmed to fit into the sink", line...)
	}
}

// tellRejected tells the log of the records that the sink will never take; the caller holds mu.
func (t *known) tellRejected(s *sinkState, now time.Time, last bool) {
	if line := s.rejected.records(now, last); line != nil {
		t.Logger.Error("record rejected; a gap record stands in its place", line...)
	}
}

// ofObject names a record of a sink in the log.
func ofObject(sinkName string, rec *change.Record) []any {
	return []any{"sink", sinkName, "resource", rec.Stream.String(), "object", rec.Key.Shown(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion}
}
