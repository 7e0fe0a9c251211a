package e2e

import (
	"fmt"
	"slices"
)

// span is one reconcile as a sink has it: what lies after from, up to and with to, need not be there version by
// version.
type span struct {
	id     string
	reason string
	place  int // of its begin
	end    int // where it ended; 0 where the order says nothing
	from   uint64
	to     uint64
}

// covers says whether the version may be missing for the span's sake.
func (s span) covers(version uint64) bool { return s.from < version && version <= s.to }

// course is how one resource went in one sink: its reconciles, and between them the watch.
type course struct {
	drift    bool
	taken    bool   // another exporter takes over one day, with a snapshot of its own
	spans    []span // those that were finished
	holes    []span // what gaps have announced
	compared bool   // a comparison for all sinks has begun
	broken   int    // those that were not
	gap      *frame // announced, and its reconcile has not begun
	open     *span
	position uint64 // of the newest record of the watch, or of the newest finished reconcile
	early    *event // a record of the watch before the first reconcile
	first    uint64 // the version of the first initial snapshot: what was before it is no change
	lost     int    // versions that gaps cover, and that did not come
	anew     int    // the place where the newest finished reconcile began that was another exporter's first
	// in place of position where there are partitions: of the newest record of the watch in each
	lanes map[int]uint64
}

// announced says whether a reconcile of the reason follows a gap.
func announced(reason string) bool {
	return !slices.Contains([]string{"initial", "requested", "resync", "drift"}, reason)
}

// isComparison says whether a reconcile of the reason is for all sinks, and read beside the watch. Where one is
// interrupted, the next life goes on with it, without another gap.
func isComparison(reason string) bool {
	return slices.Contains([]string{"initial", "gone", "redefined", "stale", "left"}, reason)
}

// take follows one event, and returns what is wrong with its place.
func (c *course) take(e *event) error {
	switch e.op() {
	case "gap":
		return c.announce(e)
	case "snapshot.begin":
		return c.begin(e)
	case "snapshot.end":
		return c.end(e)
	case "added", "updated", "deleted", "replaced", "sync":
		return c.object(e)
	case "resolved": // judged apart
		return nil
	}
	return fmt.Errorf("nobody asked for an event of type %s", e.Type)
}

func (c *course) announce(e *event) error {
	f, err := e.frame()
	if err != nil {
		return err
	}
	c.gap = &f
	hole := span{to: parseVersion(f.ResourceVersion)}
	if f.Reason != "lost" && f.Reason != "epoch" { // what was lost may be everything; other histories have other versions
		hole.from = parseVersion(f.LastDelivered)
	}
	c.holes = append(c.holes, hole)
	return nil
}

func (c *course) begin(e *event) error {
	f, err := e.frame()
	if err != nil {
		return err
	}
	broken := c.open
	if broken != nil {
		c.broken++
	}
	c.open = &span{id: e.Snapshot, reason: f.Reason, place: e.place, to: parseVersion(f.ResourceVersion)}
	gap, goesOn := c.gap, c.compared && !c.taken
	c.gap, c.compared = nil, c.compared || isComparison(f.Reason)
	if early := c.early; early != nil {
		if c.early = nil; f.Reason != "lost" {
			return fmt.Errorf("a record of the watch stands before the first reconcile, which is of reason %s:\n%s", f.Reason, early)
		}
	}
	switch {
	case (f.Reason == "resync" || f.Reason == "drift") && !c.drift:
		return fmt.Errorf("nobody asked for a resync")
	case (f.Reason == "initial" || f.Reason == "stale") && gap == nil && goesOn:
		if c.open.from = c.open.to; broken != nil && isComparison(broken.reason) && c.open.to < broken.to {
			return fmt.Errorf("a snapshot of version %d goes on at version %d", broken.to, c.open.to)
		}
	case f.Reason == "initial" && gap == nil: // a second one is of another exporter, who takes over from the first
		if c.open.from = c.position; c.first == 0 {
			c.first = c.open.to
		}
	case !announced(f.Reason) && gap == nil:
		c.open.from = c.open.to // it was all there before
	case gap == nil && f.Reason == "lost" && broken != nil && broken.reason == "lost":
		c.open.from = c.open.to // the full snapshot after the gap begins again
	case gap == nil && f.Reason != "stale" && isComparison(f.Reason) && c.open.to == c.position:
		c.open.from = c.open.to // nothing happened in between
	case gap == nil:
		return fmt.Errorf("a reconcile of reason %s begins, and no gap was announced", f.Reason)
	case gap.Reason != f.Reason && !(e.scattered() && f.Reason == "stale" && isComparison(gap.Reason)):
		return fmt.Errorf("a reconcile of reason %s begins after a gap of reason %s", f.Reason, gap.Reason)
	default:
		c.open.from = c.open.to // the gap has said so
	}
	return nil
}

func (c *course) end(e *event) error {
	if f, err := e.frame(); err == nil && f.Reason == "removed" && c.open == nil { // the watch has told all deletes
		c.open = &span{id: e.Snapshot, reason: f.Reason, place: e.place, from: parseVersion(f.ResourceVersion), to: parseVersion(f.ResourceVersion)}
	}
	if c.open == nil || c.open.id != e.Snapshot {
		return fmt.Errorf("a reconcile ends that did not begin")
	}
	if len(c.spans) > 0 && c.open.reason == "initial" {
		c.anew = c.open.place
	}
	if !e.scattered() {
		c.open.end = e.place
	}
	c.spans = append(c.spans, *c.open)
	c.position = max(c.position, c.open.to)
	c.open = nil
	return nil
}

func (c *course) object(e *event) error {
	if e.scattered() {
		return c.lane(e)
	}
	if e.Snapshot != "" {
		if c.drift && e.Reason == "resync" && (e.op() == "replaced" || e.op() == "deleted") {
			return nil // a correction, which those that asked for nothing get without frames
		}
		if c.open == nil || c.open.id != e.Snapshot {
			return fmt.Errorf("an object of a reconcile stands outside it")
		}
		return nil
	}
	if c.open == nil && len(c.spans) == 0 && c.broken == 0 {
		c.early = e
	}
	// Events that expire together are deleted in one transaction, and share its version.
	shared := e.op() == "deleted" && e.Resource == "events" && e.version() == c.position && c.position > c.newest()
	if before := c.position; e.version() <= before && !shared {
		return fmt.Errorf("a record of the watch is not newer than the position %d", before)
	}
	c.position = e.version()
	return nil
}

// covered says whether a version may be missing.
func (c *course) covered(version uint64) bool {
	covers := func(s span) bool { return s.covers(version) }
	return version <= c.first || slices.ContainsFunc(c.spans, covers) || slices.ContainsFunc(c.holes, covers)
}

// newest is the version up to which the last reconcile covers everything.
func (c *course) newest() uint64 {
	var newest uint64
	for _, s := range c.spans {
		newest = max(newest, s.to)
	}
	return newest
}

// listed is the version of the reconcile that a record belongs to.
func (c *course) listed(e *event) uint64 {
	if e.scattered() {
		version, _ := moment(e.Snapshot)
		return version
	}
	if c.open == nil {
		return 0
	}
	return c.open.to
}

// count is how many reconciles of the reason were finished.
func (c *course) count(reason string) int {
	n := 0
	for _, s := range c.spans {
		if s.reason == reason {
			n++
		}
	}
	return n
}
