package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// takerState is how one sink stands with a stream, on /statusz.
type takerState struct {
	ResourceVersion string         `json:"resourceVersion"` // the saved position
	AgeSeconds      float64        `json:"positionAgeSeconds"`
	Comparing       change.Reason  `json:"comparing,omitempty"` // with the cluster, and why
	Waits           listener.Waits `json:"waits,omitempty"`     // why it is not given the stream as others are
	Since           time.Time      `json:"since,omitzero"`      // its position stands still

	moved time.Time
}

// objectCount is how many objects of a stream a sink has: as they were counted, and what was written since.
type objectCount struct {
	n       int
	counted time.Time
	took    time.Duration // to count them
	written time.Time     // something was written last, which may not have been saved when they were counted
	vague   bool          // something was written that may not be in n, or that does not say whether it was new
}
