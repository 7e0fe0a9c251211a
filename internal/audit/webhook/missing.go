package webhook

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/audit"
)

// unfinished are writes that an event has told of, and whether another one has told their end. Batches come in any
// order, so an end may be told first. It knows only what a policy tells of that has the stage RequestReceived.
type unfinished struct {
	mu    sync.Mutex // guards the following
	known map[string]bool
	queue []seen // the oldest first
	most  int
}

// seen is when a write was told of first.
type seen struct {
	id string
	at time.Time
}

const (
	// patience is how long the API server may send a batch again, with its default flags.
	patience = 30 * time.Minute
	longest  = 64 // bytes of an audit id, which clients may choose
)

func newUnfinished(most int) *unfinished { return &unfinished{known: map[string]bool{}, most: most} }

// take notes the event, and gives the ids of the writes whose end does not come any more.
func (u *unfinished) take(e *audit.Event) (missing []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if e.IsBrief() {
		u.see(e.ID, !slices.Contains([]string{"RequestReceived", "ResponseStarted"}, e.Stage), now)
	}
	return u.overdue(now)
}

func (u *unfinished) see(id string, over bool, now time.Time) {
	id = strings.Clone(id[:min(len(id), longest)])
	was, known := u.known[id]
	u.known[id] = was || over
	if known {
		return
	}
	u.queue = append(u.queue, seen{id, now})
	if len(u.queue) > u.most {
		delete(u.known, u.queue[0].id)
		u.queue = u.queue[1:]
	}
}

func (u *unfinished) overdue(now time.Time) (missing []string) {
	for len(u.queue) > 0 && now.Sub(u.queue[0].at) > patience {
		id := u.queue[0].id
		if u.queue = u.queue[1:]; !u.known[id] {
			missing = append(missing, id)
		}
		delete(u.known, id)
	}
	return missing
}
