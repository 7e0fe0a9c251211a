package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI4NoOlderListBringsBackWhatIsGone: a list that lacked an object proved its end, though the watch has not brought
// it and the position is before the list. What is listed next is no older.
func TestI4NoOlderListBringsBackWhatIsGone(t *testing.T) {
	way := Way{Resource: "pods", Scope: checkpoint.Others}
	saved := &checkpoint.Saved{Places: map[string]checkpoint.Places{"pods": {checkpoint.Others: {At: at("117")}}}}
	f := NewFollower(saved, func(version string) string { return version })
	last := checkpoint.Row{At: at("55"), UID: "u"}
	gone := Deleted(checkpoint.Object{Resource: "pods", Key: change.Key{Name: "y"}}, way.Scope, last, AsOf(at("120"), last))
	gone.List = at("120")
	f.Tell(&gone)
	f.Ask(way, change.Resync)
	if frames := f.Due(way); len(frames) != 1 || frames[0].Comparison.ID != "120.full" {
		t.Errorf("the next comparison is %+v, want a list of 120", frames)
	}
}

// TestI4AListIsNoOlderThanWhatIsGivenOfAnyNamespace: streams of namespaces become one of all. What was deleted in one
// of them since the position of another is in no list.
func TestI4AListIsNoOlderThanWhatIsGivenOfAnyNamespace(t *testing.T) {
	saved := &checkpoint.Saved{Places: map[string]checkpoint.Places{"events": {"a": {At: at("11"), High: at("20")}, "m": {At: at("33")}}}}
	f := NewFollower(saved, func(version string) string { return version })
	frames := f.Begin(Way{Resource: "events", Scope: checkpoint.Others}, Standing{Now: at("59")})
	if len(frames) != 1 || frames[0].At != at("11") || frames[0].Comparison.ID != "33" {
		t.Errorf("the comparison is %+v, want one from 11 with a list of 33", frames)
	}
}

// TestI4WhatIsNotListedIsASuspectUntilTheWatchHasPassedTheList (rules suspects and newer). A list's pages may be of
// several versions, here of 5 to 7: whatever the sink was told behind the oldest may be on none of them.
func TestI4WhatIsNotListedIsASuspectUntilTheWatchHasPassedTheList(t *testing.T) {
	for _, test := range []struct {
		told, position string
		want           MissingVerdict
	}{{"3", "4", Open}, {"3", "6", Open}, {"3", "7", Ended}, {"5", "7", Ended}, {"6", "7", Exists}, {"6", "4", Exists}} {
		last := checkpoint.Row{At: at(test.told), UID: "u"}
		if got := JudgeMissing(at("5"), at("7"), at(test.position), last); got != test.want {
			t.Errorf("told at %s, with the position at %s: got %v, want %v", test.told, test.position, got, test.want)
		}
	}
}
