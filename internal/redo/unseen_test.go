package redo

import (
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// comparedAt20 is what a log holds of a comparison after a gap, which finds that a is gone, whose version is 7.
func comparedAt20() (ids []string) {
	for _, op := range []change.Op{change.Gap, change.SnapshotBegin, change.Deleted} {
		rec := found(update(pods(), "a", 7), op, change.Stale, "20")
		if op != change.Deleted {
			rec.Key, rec.UID, rec.ResourceVersion = change.Key{}, "", "20"
		}
		ids = append(ids, rec.ID(clusterUID).String())
	}
	return ids
}

// TestI11AnUnseenDeleteIsKnownThoughTheStateHasMovedOn: the state was put back, and what the watch brought again went
// to disk, to another object of the name or to none, before the log was read. So the inventory tells nothing of the
// object. What the gap has passed over comes from disk, and is not told after the delete.
func TestI11AnUnseenDeleteIsKnownThoughTheStateHasMovedOn(t *testing.T) {
	first, stream := update(pods(), "a", 7), pods()
	another := map[change.Key]change.Entry{first.Key: {Key: first.Key, UID: "another", ResourceVersion: "18"}}
	for _, c := range []struct {
		what, base string
		before     []*change.Record // on disk, and in the log
		now        map[change.Key]change.Entry
	}{
		{"the state had the object, and has another", "10", nil, another},
		{"the state had the object, and has none", "10", nil, nil},
		{"the position is that of the object", "7", nil, another},
		{"the object is on disk", "4", []*change.Record{first}, another},
	} {
		ledger := replaying(&saved{position: change.Position{ResourceVersion: "23"}, objects: c.now}, true)
		ledger.ReplayBase[stream.String()] = change.Position{ResourceVersion: c.base}
		ids := comparedAt20()
		for _, rec := range c.before {
			ids = append([]string{rec.ID(clusterUID).String()}, ids...)
		}
		l := readLog(t, ledger, c.before, ids...)
		ids, _ = l.Remaining()
		for where, l := range map[string]*Log{"log": l, "mark": readLog(t, ledger, nil, ids...)} {
			if taken, _ := l.Take(update(pods(), "a", 12), &Taking{ClusterUID: clusterUID, Old: true, Behind: true}); !taken {
				t.Errorf("%s: a state comes behind the delete that the %s has", c.what, where)
			}
		}
	}
}

// TestI11ADeleteBehindTheNoteOfItsObjectIsNotSaved: an interrupted comparison has not come to the object, whose state
// the sink rejected, and the state is one from before its delete. The watch brings that.
func TestI11ADeleteBehindTheNoteOfItsObjectIsNotSaved(t *testing.T) {
	rejected := found(update(pods(), "a", 15), change.Replaced, change.Initial, "17")
	gone := found(update(pods(), "a", 15), change.Deleted, change.Absent, "22")
	l := logOf(t, &saved{position: change.InitialPosition("17", "", "")}, change.NoteOf(rejected, "too_large", ""), gone)
	deleted := update(pods(), "a", 22)
	deleted.Op = change.Deleted
	if taken, _ := l.Take(deleted, &Taking{ClusterUID: clusterUID}); !taken {
		t.Error("the delete is told twice")
	}
}

// TestI11ADeleteOfWhatTheStateHasNewerIsNotSaved: the log ends with a delete that no watch saw, and the watch has
// brought again, up to the position, what the object was in between. The delete comes after that. Of what entered a
// selection again the log says so.
func TestI11ADeleteOfWhatTheStateHasNewerIsNotSaved(t *testing.T) {
	newer := update(pods(), "a", 11)
	state := &saved{position: change.InitialPosition("11", "", ""), objects: map[change.Key]change.Entry{
		newer.Key: {Key: newer.Key, UID: newer.UID, ResourceVersion: "11"},
	}}
	before := found(update(pods(), "a", 7), change.Replaced, change.Initial, "7").ID(clusterUID).String()
	l := logOfIDs(t, state, append([]string{before}, comparedAt20()...)...)
	deleted := update(pods(), "a", 14)
	deleted.Op = change.Deleted
	if taken, _ := l.Take(deleted, &Taking{ClusterUID: clusterUID}); !taken {
		t.Error("the delete is told twice")
	}
	back := logOfIDs(t, state, append(comparedAt20(), newer.ID(clusterUID).String())...)
	if taken, _ := back.Take(deleted, &Taking{ClusterUID: clusterUID}); taken {
		t.Error("the delete of what came back is not told")
	}
}

// TestI11WhatAGapHasPassedOverIsNotToldBehindADelete whose version the sink was never told: it was absent before, or
// its rules left that state out. What enters a selection again is told, and so is each change of it. A queue that
// coalesces may hold that change alone, unless the comparison has ended without the object.
func TestI11WhatAGapHasPassedOverIsNotToldBehindADelete(t *testing.T) {
	entered, before := update(pods(), "a", 12), &saved{position: change.Position{ResourceVersion: "3"}}
	entered.Op = change.Added
	end := found(update(pods(), "", 20), change.SnapshotEnd, change.Stale, "20")
	end.UID = ""
	ids := append([]string{update(pods(), "a", 5).ID(clusterUID).String()}, comparedAt20()...)
	ended := append(slices.Clone(ids), end.ID(clusterUID).String())
	carried, _ := logOfIDs(t, before, ended...).Remaining()
	for what, c := range map[string]struct {
		ids      []string
		shuffled bool
		before   []*change.Record
		want     bool
	}{
		"behind the delete":                      {ids, false, nil, true},
		"behind another begin":                   {ids, false, []*change.Record{entered}, false},
		"merged with what may be another begin":  {ids, true, nil, false},
		"merged, and the comparison is over":     {ended, true, nil, true},
		"merged, and a mark has that comparison": {carried, true, nil, true},
	} {
		l := logOfIDs(t, before, c.ids...)
		l.shuffled = c.shuffled
		for _, rec := range c.before {
			l.Take(rec, &Taking{ClusterUID: clusterUID})
		}
		if taken, _ := l.Take(update(pods(), "a", 14), &Taking{ClusterUID: clusterUID}); taken != c.want {
			t.Errorf("the log has a change that comes %s: %t", what, taken)
		}
	}
}

// TestI3WhatASinkWasToldIsGoneIsNotToCome: the sink misses the stream while a part of the tail is still to come. By a
// delete of the watch and by another b it knows what is gone, and is not to be told when it returns.
func TestI3WhatASinkWasToldIsGoneIsNotToCome(t *testing.T) {
	withSinkOnly(t, func(d *Log) {
		gone := update(pods(), "a", 15)
		gone.Op, gone.Position = change.Deleted, change.InitialPosition("15", "", "")
		for _, rec := range []*change.Record{gone, anotherB(15)} {
			d.Take(rec, &Taking{ClusterUID: clusterUID})
		}
		if ids := d.ToCome("pods"); len(ids) != 1 || ids[0].Key.Name != "c" {
			t.Errorf("to come are %v", ids)
		}
	})
}
