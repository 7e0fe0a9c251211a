package redo

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// comparing is the state of a stream that is being compared at 9, with a at 5.
func comparing() *saved {
	a := change.Entry{Key: change.Key{Namespace: "n", Name: "a"}, UID: "uid-a", ResourceVersion: "5"}
	return &saved{
		position: change.ComparedPosition("9", "", ""), objects: map[change.Key]change.Entry{a.Key: a}, ended: []string{"uid-c"},
	}
}

// TestI3WhatAPositionHasPassedOverIsNotSettled: beside a comparison the inventory alone says what is saved, and of the
// deletes of the newest version the state says which.
func TestI3WhatAPositionHasPassedOverIsNotSettled(t *testing.T) {
	stream := pods()
	deleted := func(name string, version int) *change.Record {
		rec := update(stream, name, version)
		rec.Op = change.Deleted
		return rec
	}
	for _, c := range []struct {
		rec            *change.Record
		plain, compare bool
	}{
		{update(stream, "a", 5), true, true},
		{update(stream, "b", 5), true, false},
		{deleted("b", 5), true, true},
		{deleted("b", 9), true, false},
		{deleted("c", 9), true, true},
	} {
		state := comparing()
		compared, err := Ledger{State: state}.Settled(c.rec.ID(clusterUID), &stream)
		state.position.Selector = ""
		plain, plainErr := Ledger{State: state}.Settled(c.rec.ID(clusterUID), &stream)
		if compared != c.compare || plain != c.plain || err != nil || plainErr != nil {
			t.Errorf("%s of %s at %s is settled: %t (%v), and while it is compared %t (%v); want %t and %t",
				c.rec.Op, c.rec.Key, c.rec.ResourceVersion, plain, plainErr, compared, err, c.plain, c.compare)
		}
	}
}

// TestI4WhatTheWatchTellsBesideAComparisonToBeGoneIsGone for a sink whose log has lost that, too: the inventory cannot
// tell it from what the comparison has not come to, and the list of the snapshot that the sink is owed does.
func TestI4WhatTheWatchTellsBesideAComparisonToBeGoneIsGone(t *testing.T) {
	stream, state := pods(), comparing()
	for range 2 {
		reader := Reader{Ledger: Ledger{State: state}, ClusterUID: clusterUID}
		if gone, err := reader.Gone(update(stream, "b", 5).ID(clusterUID), stream.String()); !gone || err != nil {
			t.Errorf("at %+v it is gone: %t, %v", state.position, gone, err)
		}
		state.position.Selector = ""
	}
}

// TestI3ALogAheadOfAComparisonIsNotCompared with its end: the watch brings what is newer again.
func TestI3ALogAheadOfAComparisonIsNotCompared(t *testing.T) {
	stream := pods()
	for version, want := range map[int]bool{30: false, 31: true} {
		l := logOf(t, &saved{position: change.Position{ResourceVersion: "9"}}, update(stream, "a", 31))
		l.Take(endAt(version), &Taking{ClusterUID: clusterUID})
		if got := l.Empty(); got != want {
			t.Errorf("behind the end at %d nothing comes again: %t, want %t", version, got, want)
		}
	}
}
