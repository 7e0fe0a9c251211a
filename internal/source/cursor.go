package source

import "github.com/kubecdc/kubecdc/internal/change"

// cursor is where a stream stands: the position up to which records went into the line. It is pure.
//
// A resourceVersion is not unique a frame (expired Events share one), so a watch resumes one below the position unless
// the position is known to be complete, and what comes again is dropped here.
type cursor struct {
	position change.Position
	seen     sightings // at position.ResourceVersion
	// watch counts the watches.
	watch int
	// saved is the position that this process started from; what is at its version and in the inventory was
	// delivered by an earlier one.
	saved change.Position
}

func newCursor(saved change.Position) cursor { return cursor{position: saved, saved: saved} }

// resume begins another watch, and returns the resourceVersion that it starts from.
func (c *cursor) resume() string {
	c.seen.settle()
	c.watch++
	return c.position.ResumeVersion()
}

// reached says whether all that happened up to the version was told.
func (c *cursor) reached(version string) bool {
	order := change.CompareVersions(c.position.ResourceVersion, version)
	return order > 0 || order == 0 && c.position.Complete
}

// moveTo makes the position complete at the version, as a list or a bookmark proves.
func (c *cursor) moveTo(version string) change.Position {
	if change.CompareVersions(version, c.position.ResourceVersion) >= 0 {
		c.position.ResourceVersion, c.position.Complete = version, true
		c.seen.forget()
	}
	return c.position
}

// restart sets the position to the version whatever it was, as a reconcile does.
func (c *cursor) restart(position change.Position) change.Position {
	c.position, c.saved = position, position
	c.seen.forget()
	return c.position
}

// interrupted is the position while a reconcile is under way that no watch goes on beside. The inventory comes ahead of
// it, piece by piece, and nothing is true of it any more.
func (c *cursor) interrupted() change.Position {
	if c.position.ResourceVersion == "" {
		return c.position
	}
	return c.position.Interrupt()
}

// admit takes a record of the watch. It returns false for a replay of one that is in line already, and otherwise gives
// the record its position. delivered is asked, at most, about records at the version that the process started from. The
// error is errSameVersion where one watch brings two states of an object at one version.
func (c *cursor) admit(rec *change.Record, delivered func(*change.Record) (bool, error)) (bool, error) {
	order := change.CompareVersions(rec.ResourceVersion, c.position.ResourceVersion)
	switch {
	case order > 0:
		c.position.ResourceVersion, c.position.Complete = rec.ResourceVersion, false
		c.seen.forget()
	case order < 0:
		return true, nil // no server sends this; the record is worth having, and moves nothing
	case c.seen.has(rec):
		return false, c.seen.add(rec, c.watch)
	case !c.seen.knows(rec) && rec.ResourceVersion == c.saved.ResourceVersion && !c.saved.Complete:
		if known, err := delivered(rec); known || err != nil {
			return false, err
		}
	}
	err := c.seen.add(rec, c.watch)
	rec.Position = c.position
	return err == nil, err
}
