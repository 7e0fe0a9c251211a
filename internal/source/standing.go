package source

import (
	"time"
)

// standing is where the server stood when it was asked last.
type standing struct {
	version string
	asked   time.Time
}
