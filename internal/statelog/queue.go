package statelog

import (
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// maxWaiting is how many bytes of changes wait for the log (I6). With more, the log gets a new chain.
const maxWaiting = 8 << 20

// Queue is the changes that wait for the log. It is a checkpoint.Journal.
type Queue struct {
	wake chan struct{}
	now  func() time.Time
	most int // bytes of changes

	mu       sync.Mutex // guards the following
	changes  checkpoint.Changes
	waiting  time.Time // when the oldest of them were saved; zero is that there are none
	newest   time.Time // and the newest
	unlogged time.Time // when the oldest were saved that were taken, and that no reader of the log has yet
	held     bool      // records are on this disk alone
	lost     bool      // some changes were dropped
}

// NewQueue is one of a state of which the log has nothing, so far as is known.
func NewQueue() *Queue { return newQueue(time.Now) }

func newQueue(now func() time.Time) *Queue {
	return &Queue{wake: make(chan struct{}, 1), now: now, most: maxWaiting, unlogged: now()}
}

// Record is checkpoint.Journal's.
func (q *Queue) Record(changes checkpoint.Changes, onDisk bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = onDisk
	q.add(changes)
}

// Note adds what has changed beside the database.
func (q *Queue) Note(changes checkpoint.Changes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(changes)
}

func (q *Queue) add(changes checkpoint.Changes) {
	if len(changes) > 0 {
		q.newest = q.now()
		if q.waiting.IsZero() {
			q.waiting = q.newest
		}
		if q.lost = q.lost || len(q.changes)+len(changes) > q.most; q.lost {
			q.changes = nil
		} else {
			q.changes = append(q.changes, changes...)
		}
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// taken is what the queue gives.
type taken struct {
	changes checkpoint.Changes
	saved   time.Time
}

// take takes all changes, false where the log must stand still. It says whether some were dropped since: then the log
// is behind for good, unless anew is set, with which that is forgotten, since all of the state follows.
func (q *Queue) take(anew bool) (t taken, lost, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.held:
		return t, false, false
	case q.lost && !anew:
		return t, true, false
	}
	t = taken{q.changes, q.newest}
	if t.saved.IsZero() {
		t.saved = q.now()
	}
	if q.unlogged.IsZero() {
		q.unlogged = q.waiting
	}
	q.changes, q.waiting, q.lost = nil, time.Time{}, false
	return t, false, true
}

// logged notes that a reader of the log has everything that was taken.
func (q *Queue) logged() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unlogged = time.Time{}
}

// isIdle says whether nothing waits, or nothing may be taken.
func (q *Queue) isIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held || q.waiting.IsZero()
}

// IsHeld says whether the log stands still, since records are on this disk alone.
func (q *Queue) IsHeld() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// IsBehind says whether something has changed that no reader of the log has yet.
func (q *Queue) IsBehind() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.waiting.IsZero() || !q.unlogged.IsZero()
}

// Lag is for how long the oldest change is saved that is not in the log.
func (q *Queue) Lag() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.unlogged
	if oldest.IsZero() {
		oldest = q.waiting
	}
	if oldest.IsZero() {
		return 0
	}
	return max(0, q.now().Sub(oldest))
}
