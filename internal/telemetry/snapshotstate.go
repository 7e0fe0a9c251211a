package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// snapshotState is how far a snapshot is that is being read. It is replaced, never changed.
type snapshotState struct {
	Reason  change.Reason `json:"reason"`
	Sinks   []string      `json:"sinks,omitempty"` // none is all
	Limits  change.Limits `json:"limits,omitzero"`
	Since   time.Time     `json:"since"`
	Objects int           `json:"objects"`           // that were listed
	Percent *int          `json:"percent,omitempty"` // of all; nil is not known

	expected int // objects in the inventory when it began, unknownCount where nobody had counted them
}

// listed is the state after another page. A server that has selectors does not say how many objects remain: then they
// are expected to be as many as there were.
func (s *snapshotState) listed(n int, remaining int64) *snapshotState {
	next := *s
	next.Objects += n
	switch all := int64(next.Objects) + remaining; {
	case remaining == 0:
		next.Percent = percent(1, 1)
	case remaining > 0:
		next.Percent = percent(int64(next.Objects), all)
	case next.expected > 0:
		next.Percent = percent(int64(min(next.Objects, next.expected)), int64(next.expected)+1)
	}
	return &next
}

// percent rounds down: only all is a hundred.
func percent(part, of int64) *int {
	n := int(part * 100 / of)
	return &n
}
