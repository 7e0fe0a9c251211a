package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// scattered says whether the event is in a log of several partitions, which has an order in each of them only.
func (e *event) scattered() bool { return e.seat != nil && e.seat.partitions > 1 }

// inOrder is the order in which the events are judged: their own, but where they are scattered, the frames of
// reconciles first, one reconcile after the other. Each kind of frame has a key of its own, and so mostly a partition.
//
// A reconcile of which the begin or the gap is missing was broken by a crash, between the writes to one partition and
// another. It is none: if nothing else covers what it was to bring, that is missing.
func inOrder(events []event) []*event {
	var frames, rest []*event
	there := map[string]bool{}
	for i := range events {
		if e := &events[i]; e.scattered() && e.UID == "" {
			frames = append(frames, e)
			there[e.kind()+" "+e.op()+" "+e.Snapshot] = true
		} else {
			rest = append(rest, e)
		}
	}
	whole := slices.DeleteFunc(slices.Clone(frames), func(e *event) bool {
		f, err := e.frame()
		has := func(op string) bool { return there[e.kind()+" "+op+" "+e.Snapshot] }
		needsGap := err == nil && announced(f.Reason) && f.Reason != "stale" // which may go on
		return e.op() != "gap" && needsGap && !has("gap") || e.op() == "snapshot.end" && !has("snapshot.begin")
	})
	slices.SortStableFunc(whole, func(a, b *event) int {
		versionA, timeA := moment(a.Snapshot)
		versionB, timeB := moment(b.Snapshot)
		return cmp.Or(cmp.Compare(versionA, versionB), cmp.Compare(timeA, timeB), cmp.Compare(rank(a), rank(b)))
	})
	return append(whole, rest...)
}

// moment is the list's version and the time, which make the id of a reconcile: what it is of may follow.
func moment(id string) (version, millis uint64) {
	first, rest, _ := strings.Cut(id, ".")
	second, _, _ := strings.Cut(rest, ".")
	return parseVersion(first), parseVersion(second)
}

func rank(e *event) int {
	return slices.Index([]string{"gap", "snapshot.begin", "snapshot.end"}, e.op())
}

// lane judges the place of an object's event in its partition.
func (c *course) lane(e *event) error {
	if e.Snapshot != "" {
		return nil
	}
	if before := c.lanes[e.seat.partition]; e.version() <= before {
		return fmt.Errorf("a record of the watch is not newer than the position %d of its partition", before)
	}
	if c.lanes == nil {
		c.lanes = map[int]uint64{}
	}
	c.lanes[e.seat.partition] = e.version()
	return nil
}

// fromGap leaves out what a log that was made again has of a resource before the gap that says so: the batch that met
// the new log, which came twice, and what waited after it. The versions in it are what the comparison need not tell.
func fromGap(events []event) (rest []event, had map[uint64]bool) {
	first := map[string]*event{}
	for i := range events {
		if e := &events[i]; e.UID == "" && first[e.kind()] == nil {
			first[e.kind()] = e
		}
	}
	had = map[uint64]bool{}
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool {
		f := first[e.kind()]
		before := f != nil && f.op() == "gap" && e.place < f.place
		if before && e.UID != "" {
			had[e.version()] = true
		}
		return before
	}), had
}
