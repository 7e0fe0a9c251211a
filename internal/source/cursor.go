package source

import (
	"errors"
	"hash/crc32"

	"github.com/kubecdc/kubecdc/internal/change"
)

// cursor is where a stream stands: the position up to which records went into the line. It is pure.
//
// A resourceVersion is not unique a frame (expired Events share one), so a watch resumes one below the position unless
// the position is known to be complete, and what comes again is dropped here.
type cursor struct {
	position change.Position
	// seen are the records at position.ResourceVersion that went into the line in this process, maxSeen at most.
	seen map[seenRecord]sighting
	// watch counts the watches.
	watch int
	// saved is the position that this process started from; what is at its version and in the inventory was
	// delivered by an earlier one.
	saved change.Position
}

// maxSeen bounds the records of one version that are remembered (I6); 1,000 Events expire together where the API
// server's flags are the default ones. What is not remembered may be told twice, and is never dropped.
const maxSeen = 1 << 16

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

func newCursor(saved change.Position) cursor { return cursor{position: saved, saved: saved} }

// resume begins another watch, and returns the resourceVersion that it starts from.
func (c *cursor) resume() string {
	c.watch++
	return c.resumeVersion()
}

// resumeVersion is the resourceVersion that a watch starts from.
func (c *cursor) resumeVersion() string { return c.position.ResumeVersion() }

// moveTo makes the position complete at the version, as a list or a bookmark proves.
func (c *cursor) moveTo(version string) change.Position {
	if change.CompareVersions(version, c.position.ResourceVersion) >= 0 {
		c.position.ResourceVersion, c.position.Complete = version, true
		clear(c.seen)
	}
	return c.position
}

// restart sets the position to the version whatever it was, as a reconcile does.
func (c *cursor) restart(position change.Position) change.Position {
	c.position, c.saved = position, position
	clear(c.seen)
	return c.position
}

// admit takes a record of the watch. It returns false for a replay of one that is in line already, and otherwise gives
// the record its position. delivered is asked, at most, about records at the version that the process started from. The
// error is errSameVersion where one watch brings two states of an object at one version.
func (c *cursor) admit(rec *change.Record, delivered func(*change.Record) (bool, error)) (bool, error) {
	order := change.CompareVersions(rec.ResourceVersion, c.position.ResourceVersion)
	switch {
	case order > 0:
		c.position.ResourceVersion, c.position.Complete = rec.ResourceVersion, false
		clear(c.seen)
	case order < 0:
		return true, nil // no server sends this; the record is worth having, and moves nothing
	case c.isSeen(rec):
		return false, c.see(rec)
	case !c.isKnown(rec) && rec.ResourceVersion == c.saved.ResourceVersion && !c.saved.Complete:
		if known, err := delivered(rec); known || err != nil {
			return false, err
		}
	}
	err := c.see(rec)
	rec.Position = c.position
	return err == nil, err
}

// errSameVersion says that the server changes objects and leaves their resourceVersion as it was.
var errSameVersion = errors.New("the watch sent two states of the object at one resourceVersion")

// isSeen says whether the record is in line already. One with other content is not, unless it was written by an API
// server of another version, which nobody can tell: so it is told rather than lost.
func (c *cursor) isSeen(rec *change.Record) bool {
	seen, found := c.seen[seenRecord{rec.Key, rec.UID, rec.Op}]
	return found && seen.size == len(rec.Object) && seen.sum == sum(rec)
}

// isKnown says whether a record of the object is in line at the version, with whatever content.
func (c *cursor) isKnown(rec *change.Record) bool {
	_, found := c.seen[seenRecord{rec.Key, rec.UID, rec.Op}]
	return found
}

// see remembers the record.
func (c *cursor) see(rec *change.Record) error {
	if c.seen == nil {
		c.seen = map[seenRecord]sighting{}
	}
	key, now := seenRecord{rec.Key, rec.UID, rec.Op}, sighting{len(rec.Object), sum(rec), c.watch}
	before, found := c.seen[key]
	switch {
	case found && before.watch == now.watch && before != now:
		return errSameVersion
	case found || len(c.seen) < maxSeen:
		c.seen[key] = now
	}
	return nil
}

func sum(rec *change.Record) uint32 {
	return crc32.Checksum(rec.Object, crc32.MakeTable(crc32.Castagnoli))
}
