package telemetry

import "time"

// A sink that does not fail may still take fewer records than arrive. slow is how old its oldest record is then, and
// how long that lasts until the log is told: a record that another sink has held up is old when it comes. After an
// outage, what waited has as much time as that took.
const slow = time.Minute

// behind is what the log knows of a sink that takes records too slowly.
type behind struct {
	late  time.Time // since when its oldest record is old; zero is not
	since time.Time // zero is not behind
	spool bool      // it fills
}
