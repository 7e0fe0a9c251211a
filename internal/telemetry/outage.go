package telemetry

import (
	"time"
)

// patience is how long a sink that was open may repeat what it does before somebody is told: brokers that change their
// leader are routine. A word is how often the log is told of what lasts.
const (
	patience = 5 * time.Second
	word     = time.Minute
)

// outage is the time in which a sink does not take records, from its first error to its next batch.
type outage struct {
	began    time.Time // zero is none
	told     time.Time // the last line of it; zero is none yet
	attempts int
	gaps     int // that were known when it began
}

// fails notes an attempt that failed, and says whether the log is to be told: at once, or when it has lasted. The first
// line is its beginning, those after it come once a minute.
func (o *outage) fails(now time.Time, gaps int, atOnce bool) (first, again bool) {
	if o.began.IsZero() {
		*o = outage{began: now, gaps: gaps}
	}
	o.attempts++
	first = o.told.IsZero() && (atOnce || now.Sub(o.began) >= patience)
	again = !o.told.IsZero() && now.Sub(o.told) >= word
	if first || again {
		o.told = now
	}
	return first, again
}

// heard notes that the log was told something else of the outage: the next line comes a minute later.
func (o *outage) heard(now time.Time) {
	if !o.told.IsZero() {
		o.told = now
	}
}
