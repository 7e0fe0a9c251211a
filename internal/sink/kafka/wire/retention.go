package wire

import "time"

// Retention is how long a topic keeps what it does not compact.
type Retention struct {
	Time  time.Duration // negative is for ever
	Bytes int64         // a partition; negative is without limit
}
