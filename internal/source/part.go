package source

import "github.com/kubecdc/kubecdc/internal/change"

// part is a difference as one sink sees it.
type part struct {
	owed     change.Owed
	pace     pace
	snapshot *change.Snapshot // of the sink's own records
}
