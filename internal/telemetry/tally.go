package telemetry

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// tally counts what is worth a line once and may happen to any number of objects: the log is told at once, and then
// once a minute with a count and an example.
type tally struct {
	told    time.Time
	since   int   // the last line
	example []any // the newest of them
}

// note counts one more.
func (a *tally) note(example ...any) { a.since, a.example = a.since+1, example }

// take returns how many the log does not know of, and the newest of them, if it is time to tell it or these are the
// last ones; otherwise 0.
func (a *tally) take(now time.Time, last bool) (n int, example []any) {
	if a.since == 0 || !last && !a.told.IsZero() && now.Sub(a.told) < word {
		return 0, nil
	}
	n, example = a.since, a.example
	*a = tally{told: now}
	return n, example
}

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

// records is the example, with the number of records if it is one of several; nil if nothing is to be told.
func (a *tally) records(now time.Time, last bool) []any {
	n, example := a.take(now, last)
	if n > 1 {
		example = append(example, "records", n)
	}
	return example
}

// ofObject names a record of a sink in the log.
func ofObject(sinkName string, rec *change.Record) []any {
	return []any{"sink", sinkName, "resource", rec.Stream.String(), "object", rec.Key.String(), "uid", rec.UID, "resourceVersion", rec.ResourceVersion}
}
