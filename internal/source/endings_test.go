package source

import (
	"testing"
	"time"
)

// TestI4WatchesThatEndAtOnceWithNothingMakeThePositionStale where maxEmpty do so in a row.
func TestI4WatchesThatEndAtOnceWithNothingMakeThePositionStale(t *testing.T) {
	empty := func(e *endings) bool { return e.ended(0, true, 0) }
	for what, c := range map[string]struct {
		between func(e *endings) bool
		counts  int // how many of the empty ones before it still do
	}{
		"nothing":           {func(*endings) bool { return false }, maxEmpty - 1},
		"one that is cut":   {func(e *endings) bool { return e.ended(0, false, 0) }, maxEmpty - 1},
		"a frame":           {func(e *endings) bool { return e.ended(1, true, 0) }, 0},
		"one that lived":    {func(e *endings) bool { return e.ended(0, true, time.Second) }, 0},
		"one that lived on": {func(e *endings) bool { return e.ended(0, false, time.Second) }, 0},
	} {
		var e endings
		for range maxEmpty - 1 {
			if empty(&e) {
				t.Errorf("%s: stale before %d", what, maxEmpty)
			}
		}
		if c.between(&e) {
			t.Errorf("%s: it makes the position stale", what)
		}
		for range maxEmpty - 1 - c.counts {
			if empty(&e) {
				t.Errorf("%s: it does not begin the count anew", what)
			}
		}
		if !empty(&e) || empty(&e) {
			t.Errorf("%s: not stale, or twice", what)
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
