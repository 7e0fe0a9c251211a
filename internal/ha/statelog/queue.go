package statelog

import (
	"cmp"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// maxWaiting is how many bytes of changes wait for the log (I6). With more, the log gets a new chain.
const maxWaiting = 8 << 20

// Queue is the changes that wait for the log. It is a checkpoint.Journal.
type Queue struct {
	wake sink.Bell
	most int // bytes of changes

	mu       sync.Mutex // guards the following
	changes  checkpoint.Changes
	waiting  time.Time // when the oldest of them were saved; zero is that there are none
	newest   time.Time // and the newest
	unlogged time.Time // when the oldest were saved that were taken, and that no reader of the log has yet
	lost     bool      // some changes were dropped
}

// NewQueue is one of a state of which the log has nothing, so far as is known.
func NewQueue() *Queue {
	return &Queue{wake: sink.NewBell(), most: maxWaiting, unlogged: time.Now()}
}

// Record is checkpoint.Journal's. It is also told what has changed beside the database.
func (q *Queue) Record(changes checkpoint.Changes) {
	if len(changes) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.newest = time.Now()
	if q.waiting.IsZero() {
		q.waiting = q.newest
	}
	if q.lost = q.lost || len(q.changes)+len(changes) > q.most; q.lost {
		q.changes = nil
	} else {
		q.changes = append(q.changes, changes...)
	}
	q.wake.Ring()
}

// take takes all changes, as a unit. It says whether some were dropped since: then the log is behind for good, unless
// anew is set, with which that is forgotten, since all of the state follows.
func (q *Queue) take(anew bool) (u *unit, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost && !anew {
		return &unit{}, true
	}
	u = &unit{changes: q.changes, saved: cmp.Or(q.newest, time.Now())}
	q.unlogged = cmp.Or(q.unlogged, q.waiting)
	q.changes, q.waiting, q.lost = nil, time.Time{}, false
	return u, false
}

// logged notes that a reader of the log has everything that was taken.
func (q *Queue) logged() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlogged = time.Time{}
}

// isIdle says whether nothing waits.
func (q *Queue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.IsZero()
}

// oldest is when the oldest change was saved that no reader of the log has yet; zero is that each has one.
func (q *Queue) oldest() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cmp.Or(q.unlogged, q.waiting)
}

// IsBehind says whether something has changed that no reader of the log has yet.
func (q *Queue) IsBehind() bool { return !q.oldest().IsZero() }

// Lag is for how long the oldest change is saved that is not in the log.
func (q *Queue) Lag() time.Duration {
	oldest := q.oldest()
	if oldest.IsZero() {
		return 0
	}
	return max(0, time.Since(oldest))
}
