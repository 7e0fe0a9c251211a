package source

import (
	"errors"
	"hash/crc32"
	"maps"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// reflectorBackoff starts sooner than the Reflector's own, which waits from 0.8 s up to 60 s: from 0.1 s up to 30 s.
// The jitter makes each wait up to twice as long.
func reflectorBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// opOf is the operation of a frame.
func opOf(t frame.Type) change.Op {
	switch t {
	case frame.Added:
		return change.Added
	case frame.Modified:
		return change.Updated
	}
	return change.Deleted
}

// maxSeen bounds the records of one version that are remembered (I6); with an API server's default flags, 1,000 Events
// expire together. A record that is not remembered may be told twice, and is never dropped.
const maxSeen = 1 << 16

// sightings are the records of one resourceVersion that this Informer's watches have brought, maxSeen at most.
type sightings map[seenRecord]sighting

// sighting is the content of a record, and the watch that brought it last.
type sighting struct {
	size  int
	sum   uint32 // CRC-32C
	watch int
}

// seenRecord tells the records of one resourceVersion apart.
type seenRecord struct {
	key change.Key
	uid string
	op  change.Op
}

// forget is for another version. A version of many records leaves no large map, which takes long to clear.
func (s *sightings) forget() {
	const few = 1 << 6
	if len(*s) > few {
		*s = sightings{}
	}
	clear(*s)
}

// errSameVersion says that the server changes objects and leaves their resourceVersion as it was.
var errSameVersion = errors.New("the watch sent two states of the object at one resourceVersion")

// note remembers the record, which the watch of that number brought, and says whether it is in line already. One with
// other content is told again rather than lost: whether only an API server of another version wrote it differently,
// nobody can tell.
func (s sightings) note(rec *change.Record, watch int) (again bool, err error) {
	key := seenRecord{rec.Key, rec.UID, rec.Op}
	now := sighting{len(rec.Object), crc32.Checksum(rec.Object, crc32.MakeTable(crc32.Castagnoli)), watch}
	before, found := s[key]
	again = found && before == sighting{now.size, now.sum, before.watch}
	switch {
	case found && !again && before.watch == watch:
		return false, errSameVersion
	case found || len(s) < maxSeen:
		s[key] = now
	}
	return again, nil
}

// isLike says whether both are of the same records.
func (s sightings) isLike(other sightings) bool {
	return maps.EqualFunc(s, other, func(sighting, sighting) bool { return true })
}

// maxEmpty is how many watches in a row may end at once without a frame before the position counts as stale: a server
// without a watch cache can answer a version that it does not have with an empty stream.
const maxEmpty = 5

// endings is what the ends of watches, one after the other, say about the position. It is pure. The zero value is ready
// for use.
type endings struct {
	empty    int    // watches in a row that the server ended at once without a frame
	brokenAt string // the position at which the last watch brought what cannot be read, "" if it did not

	goneAgain atomic.Bool // a position was gone, and no watch has worked since; atomic, since a watch may end meanwhile
}

// isFirstGone says whether this is the first position that is gone since a watch worked. The Reflector's backoff is for
// later ones.
func (e *endings) isFirstGone() bool { return !e.goneAgain.Swap(true) }

// ended evaluates a watch that has ended, and says whether the position is stale. A watch that was cut off says nothing
// about that: it neither counts nor resets the count.
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

// broke evaluates a watch that failed at the position, and says whether something there could not be read for the
// second time: the first time it may have been broken on its way.
func (e *endings) broke(at string, unreadable bool) (again bool) {
	again = unreadable && e.brokenAt == at
	if e.brokenAt = at; !unreadable || again {
		e.brokenAt = ""
	}
	return again
}

// unmarkedShare divides the Reflector's 5 to 10 minutes for a watch that may have no bookmarks: an API server keeps at
// least 5 minutes of Events (--etcd-compaction-interval), and a quiet stream's position is as old as its watch.
const unmarkedShare = 3

// minSilence is how long a watch must be silent to prove something: whatever was under way when it began has come by
// then. It is less than the time limit of a watch (guard.watchSeconds).
const minSilence = 30 * time.Second

// silence is what watches without frames prove. It is pure.
type silence struct {
	least      time.Duration // minSilence, except in tests
	upTo       string        // the version up to which the last watch proved silence, "" for none
	bookmarked bool          // a watch of this life had a bookmark
}

// bookmarkEvery is how often an API server sends a bookmark. It also sends one in the last two seconds of a watch, if
// that takes three or more (apiserver, cacheWatcher.nextBookmarkTime).
const bookmarkEvery = time.Minute

// limit is the time limit of the next watch in seconds. resolved is the shortest interval of Resolved records that a
// sink asks for; 0 is never.
func (s *silence) limit(asked *int64, resolved time.Duration) *int64 {
	if asked == nil || s.bookmarked && (resolved == 0 || resolved >= bookmarkEvery) {
		return asked
	}
	short := max(1, *asked/unmarkedShare)
	if s.bookmarked {
		short = max(3, int64(resolved.Seconds())) + 1
	}
	return &short
}

// note remembers that a silent watch, which began when the server stood at the version, proved silence up to there.
func (s *silence) note(silent bool, took time.Duration, version string) {
	s.upTo = ""
	if silent && took >= s.least {
		s.upTo = version
	}
}

// take returns the version that the last watch proved, once.
func (s *silence) take() (version string) {
	version, s.upTo = s.upTo, ""
	return version
}
