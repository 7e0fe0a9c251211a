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
// neither counts nor begins the count anew.
func (e *endings) ended(frames int, orderly bool, took time.Duration) (stale bool) {
	if took >= time.Second {
		e.goneAgain.Store(false)
	}
	switch {
	case frames > 0 || took >= time.Second:
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

// unmarkedShare is which part of the Reflector's 5 to 10 minutes a watch takes that may have no bookmarks: an API
// server keeps at least 5 minutes of Events (--etcd-compaction-interval), and the position of a quiet one is as old as
// the watch.
const unmarkedShare = 3

// minSilence is how long a watch must have been silent: whatever was under way when it began has come by then. It is
// less than a watch may take (guard.watchSeconds).
const minSilence = 30 * time.Second

// silence is what watches prove that had nothing to tell. It is pure.
type silence struct {
	least      time.Duration // of a watch that proves something
	upTo       string        // the version that the last watch proved silence up to, "" for none
	bookmarked bool          // a watch of this life had a bookmark
}

// limit is the time limit of the next watch in seconds.
func (s *silence) limit(asked *int64) *int64 {
	if asked == nil || s.bookmarked {
		return asked
	}
	short := max(1, *asked/unmarkedShare)
	return &short
}

// note remembers up to where a watch proved silence that began when the server stood at the version.
func (s *silence) note(silent bool, took time.Duration, version string) {
	s.upTo = ""
	if silent && took >= s.least {
		s.upTo = version
	}
}

// take returns what the last watch proved, which serves once.
func (s *silence) take() (version string) {
	version, s.upTo = s.upTo, ""
	return version
}
