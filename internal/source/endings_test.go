package source

import (
	"testing"
	"time"
)

// TestI4WatchesThatEndAtOnceWithNothingMakeThePositionStale where maxEmpty do so in a row. One that is cut
// says nothing.
func TestI4WatchesThatEndAtOnceWithNothingMakeThePositionStale(t *testing.T) {
	for what, c := range map[string]struct {
		frames  int
		orderly bool
		took    time.Duration
		want    bool // the next empty one is the last
	}{
		"one that is cut": {0, false, 0, true}, "a frame": {1, true, 0, false},
		"one that lived": {0, true, time.Second, false}, "one that lived on": {0, false, time.Second, false},
	} {
		var e endings
		for range maxEmpty - 1 {
			if e.ended(0, true, 0) {
				t.Errorf("%s: stale before %d", what, maxEmpty)
			}
		}
		if e.ended(c.frames, c.orderly, c.took) || e.ended(0, true, 0) != c.want || c.want && e.ended(0, true, 0) {
			t.Errorf("%s: stale, twice, or not", what)
		}
	}
}

// TestI4WhatCannotBeReadTwiceAtOnePositionIsNoAccident of the way.
func TestI4WhatCannotBeReadTwiceAtOnePositionIsNoAccident(t *testing.T) {
	var e endings
	for i, c := range []struct {
		at                string
		unreadable, again bool
	}{
		{"7", true, false}, {"7", true, true}, // and it is mended then
		{"7", true, false}, {"8", true, false}, {"8", false, false}, {"8", true, false}, {"8", true, true},
		{"8", false, false}, {"8", false, false},
	} {
		if again := e.broke(c.at, c.unreadable); again != c.again {
			t.Errorf("%d: %+v: again %t", i, c, again)
		}
	}
}

// A server that forgets each position at once is not asked without end.
func TestOnlyTheFirstOfPositionsThatAreGoneIsReadBeyondAtOnce(t *testing.T) {
	var e endings
	if !e.isFirstGone() || e.isFirstGone() {
		t.Error("the second is taken for the first, or the first is not")
	}
	if e.ended(1, true, time.Millisecond); e.isFirstGone() {
		t.Error("a watch that was short is taken for one that worked")
	}
	if e.ended(1, true, time.Second); !e.isFirstGone() {
		t.Error("a watch that worked is not")
	}
}
