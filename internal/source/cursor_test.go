package source

import (
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func watched(op change.Op, name, version string) *change.Record {
	return &change.Record{Op: op, Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name, ResourceVersion: version}
}

// admitted runs the record through the cursor; delivered are the names that the inventory says were delivered.
func admitted(t *testing.T, c *cursor, rec *change.Record, delivered ...string) bool {
	t.Helper()
	fresh, err := c.admit(rec, func(rec *change.Record) (bool, error) {
		for _, name := range delivered {
			if rec.Key.Name == name {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

func TestI2PositionIsIncompleteUntilSomethingNewerIsSeen(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "10", Complete: true})
	if got := c.position.ResumeVersion(); got != "10" {
		t.Fatalf("a complete position resumes at %s, want 10", got)
	}
	rec := watched(change.Updated, "a", "20")
	admitted(t, &c, rec)
	if want := (change.Position{ResourceVersion: "20"}); rec.Position != want {
		t.Fatalf("position is %+v, want %+v", rec.Position, want)
	}
	if got := c.position.ResumeVersion(); got != "19" {
		t.Fatalf("resumes at %s, want 19: other records may share 20", got)
	}
	if got := c.moveTo("20"); !got.Complete {
		t.Fatalf("a bookmark at 20 leaves %+v", got)
	}
}

func TestI3RecordsThatShareAVersionAllPassOnce(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "10", Complete: true})
	for _, name := range []string{"a", "b"} {
		if !admitted(t, &c, watched(change.Deleted, name, "20")) {
			t.Fatalf("delete of %s was dropped", name)
		}
	}
	// The connection breaks; the watch resumes from 19 and everything at 20 comes again.
	for name, want := range map[string]bool{"a": false, "b": false, "c": true} {
		if got := admitted(t, &c, watched(change.Deleted, name, "20")); got != want {
			t.Errorf("delete of %s after the reconnect: admitted %t, want %t", name, got, want)
		}
	}
}

func TestI2WhatAnEarlierLifeDeliveredIsSkippedAtTheSavedVersionOnly(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "20"})
	if admitted(t, &c, watched(change.Deleted, "a", "20"), "a") {
		t.Error("a record at the saved position that the inventory has was sent again")
	}
	if !admitted(t, &c, watched(change.Deleted, "b", "20"), "a") {
		t.Error("a record at the saved position that was not delivered is lost")
	}
	if !admitted(t, &c, watched(change.Deleted, "a", "21"), "a") {
		t.Error("above the saved position the inventory lags; the delete of an object that is still in line is lost")
	}
}

func TestI2CompleteSavedPositionAsksNoInventory(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "20", Complete: true})
	if !admitted(t, &c, watched(change.Updated, "a", "20"), "a") {
		t.Error("a record was dropped although nothing at the version was delivered as a record")
	}
}

func TestOlderRecordMovesNothing(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "20", Complete: true})
	rec := watched(change.Updated, "a", "15")
	if !admitted(t, &c, rec) || rec.Position != (change.Position{}) {
		t.Errorf("an older record got position %+v", rec.Position)
	}
	if c.moveTo("15"); c.position.ResourceVersion != "20" {
		t.Errorf("an older bookmark moved the position to %s", c.position.ResourceVersion)
	}
}

func TestEpochAndSelectorStayInThePosition(t *testing.T) {
	c := newCursor(change.Position{})
	c.restart(change.Position{ResourceVersion: "10", Complete: true, Epoch: "e", Selector: "labels=app%3Dx&fields="})
	rec := watched(change.Updated, "a", "20")
	admitted(t, &c, rec)
	if rec.Position.Selector == "" || rec.Position.Epoch != "e" {
		t.Errorf("epoch or selector are gone from the position: %+v", rec.Position)
	}
}

// TestI6WhatIsSeenAtOneVersionIsBounded: what is not remembered may be told twice.
func TestI6WhatIsSeenAtOneVersionIsBounded(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "10", Complete: true})
	for i := range maxSeen + 10 {
		if !admitted(t, &c, watched(change.Deleted, strconv.Itoa(i), "20")) {
			t.Fatalf("delete %d was dropped", i)
		}
	}
	if len(c.seen.settled) != maxSeen {
		t.Errorf("%d records are remembered, want %d", len(c.seen.settled), maxSeen)
	}
	if admitted(t, &c, watched(change.Deleted, "1", "20")) || !admitted(t, &c, watched(change.Deleted, strconv.Itoa(maxSeen+1), "20")) {
		t.Error("what is remembered was told twice, or what is not was dropped")
	}
}

// TestI4OtherContentAtOneVersionIsNoReplay: within one watch it is an error, and in another one it is told.
func TestI4OtherContentAtOneVersionIsNoReplay(t *testing.T) {
	c := newCursor(change.Position{ResourceVersion: "10", Complete: true})
	state := func(object string) *change.Record {
		rec := watched(change.Updated, "a", "20")
		rec.Object = []byte(object)
		return rec
	}
	never := func(*change.Record) (bool, error) { return false, nil }
	c.resume()
	admitted(t, &c, state("one"))
	if admitted(t, &c, state("one")) {
		t.Error("the same was told twice")
	}
	if fresh, err := c.admit(state("two"), never); fresh || err != errSameVersion {
		t.Errorf("another state: %t, %v", fresh, err)
	}
	if c.resume(); admitted(t, &c, state("one")) {
		t.Error("after a reconnect the same is told again")
	}
	if c.resume(); !admitted(t, &c, state("two")) {
		t.Error("after a reconnect another state is dropped")
	}
}

// TestI4OfItsOwnVersionAnIncompletePositionHasNotToldAll: several records may share it.
func TestI4OfItsOwnVersionAnIncompletePositionHasNotToldAll(t *testing.T) {
	for _, c := range []struct {
		complete bool
		version  string
		reached  bool
	}{{true, "20", true}, {false, "20", false}, {false, "9", true}, {true, "21", false}, {true, "100", false}} {
		at := newCursor(change.Position{ResourceVersion: "20", Complete: c.complete})
		if got := at.reached(c.version); got != c.reached {
			t.Errorf("%+v: reached %t", c, got)
		}
	}
}
