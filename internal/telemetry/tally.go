package telemetry

import (
	"time"
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

// records is the example, with the number of records if it is one of several; nil if nothing is to be told.
func (a *tally) records(now time.Time, last bool) []any {
	n, example := a.take(now, last)
	if n > 1 {
		example = append(example, "records", n)
	}
	return example
}
