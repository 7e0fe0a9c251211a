package source

import (
	"sync/atomic"
	"time"
)

// maxEmpty is how many watches may end at once with nothing before the position is held to be stale: a server without
// a watch cache can answer a version that it does not have with an empty stream.
const maxEmpty = 5

// endings is what the ends of watches, one after the other, say of the position. It is pure. The zero value is ready
// for use.
type endings struct {
	empty    int    // watches in a row that the server ended at once with nothing
	brokenAt string // the position at which the last watch brought what cannot be read, "" where it did not

	goneAgain atomic.Bool // a position was gone, and no watch has worked since; a watch may end while it is told so
}

// isFirstGone says whether no other position was gone since a watch worked. The others are left to the Reflector's
// backoff.
func (e *endings) isFirstGone() bool { return !e.goneAgain.Swap(true) }

// ended takes a watch that ended, and says whether the position is stale. One that was cut off tells nothing of it: it
// neither counts nor begins the count anew. One that was stopped, since a reconcile is due, begins it anew.
func (e *endings) ended(frames int, orderly bool, took time.Duration, stopped bool) (stale bool) {
	if took >= time.Second {
		e.goneAgain.Store(false)
	}
	switch {
	case frames > 0 || took >= time.Second || stopped:
		e.empty = 0
	case orderly:
		e.empty++
	}
	if stale = e.empty >= maxEmpty; stale {
		e.empty = 0
	}
	return stale
}

// broke takes a watch that failed at the position, and says whether what cannot be read stands there for the second
// time: a watch may have been broken on its way.
func (e *endings) broke(at string, unreadable bool) (again bool) {
	again = unreadable && e.brokenAt == at
	if e.brokenAt = at; !unreadable || again {
		e.brokenAt = ""
	}
	return again
}
