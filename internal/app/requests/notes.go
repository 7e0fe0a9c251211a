package requests

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/signal"
)

// progressPause is the least time between two notifications of how far a snapshot is.
const progressPause = 5 * time.Second

// notes are what is to be told, and is not saved.
type notes struct {
	refusals []signal.Notification
	listed   map[string]listing // by the task's id
}

// listing is how far a snapshot was when it was told.
type listing struct {
	objects int
	time    time.Time
}

// isDue says whether to tell of so many objects.
func (n *notes) isDue(id string, objects int, now time.Time) bool {
	last := n.listed[id]
	if objects == 0 || objects == last.objects || now.Sub(last.time) < progressPause {
		return false
	}
	n.listed[id] = listing{objects, now}
	return true
}
