package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// hauntedSet is what a log with a, b and c leaves.
func hauntedSet(t *testing.T, use func(d *deliveredSet)) {
	r := newRig(t, sinkOf("s", &memory{}))
	if err := r.life(func(*Line) {
		d := &deliveredSet{streams: references([]change.Stream{pods()}), ledger: ledger{store: r.store}, foreign: foreign(nil, clusterUID)}
		ids := []string{idOf(update(pods(), "a", 2)), idOf(update(pods(), "b", 3)), idOf(update(pods(), "c", 4))}
		if err := readAll(d, ids); err != nil {
			t.Fatal(err)
		}
		use(d)
	}); err != nil {
		t.Fatal(err)
	}
}

// names are the objects' names in their order.
func names(entries []change.Entry) string {
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Key.Name)
	}
	return strings.Join(all, " ")
}

// A list that is older than a ghost proves nothing of it; one of another history, whatever its version, does.
func TestI3ReconcileProvesNothingOfWhatIsNewer(t *testing.T) {
	hauntedSet(t, func(d *deliveredSet) {
		for at, want := range map[string]string{"2": "a", "3": "a b", "20": "a b c"} {
			end := found(update(pods(), "", 20), change.SnapshotEnd, change.Gone, at)
			if got := names(d.left(end, clusterUID)); got != want {
				t.Errorf("at the end of a list at %s %q are left, want %q", at, got, want)
			}
			if end.Epoch = change.NewEpoch(clusterUID, 7); names(d.left(end, clusterUID)) != "a b c" {
				t.Errorf("at the end of a list of another history %q are left", names(d.left(end, clusterUID)))
			}
			if end.Sink = "s"; len(d.left(end, clusterUID)) > 0 {
				t.Error("a full snapshot's end proves something")
			}
		}
		for version, want := range map[int]string{2: "", 15: "b"} {
			if _, gone := d.take(anotherB(version), &taking{clusterUID: clusterUID}); names(gone) != want {
				t.Errorf("before another b of version %d %q is gone, want %q", version, names(gone), want)
			}
		}
	})
}

// A queue that coalesces may leave nothing of the next object but its delete. In another history the object may be an
// older one.
func TestI4DeleteOfTheNextObjectProvesThatTheGhostIsGone(t *testing.T) {
	hauntedSet(t, func(d *deliveredSet) {
		older, foreign, later := anotherB(2), anotherB(15), anotherB(15)
		older.UID, foreign.UID, foreign.Epoch = "older", "foreign", change.NewEpoch(clusterUID, 7)
		for _, step := range []struct {
			rec  *change.Record
			want string
		}{{older, ""}, {foreign, ""}, {later, "b"}} {
			step.rec.Op = change.Deleted
			if _, gone := d.take(step.rec, &taking{clusterUID: clusterUID}); names(gone) != step.want {
				t.Errorf("before the delete of %s %q is gone, want %q", step.rec.UID, names(gone), step.want)
			}
		}
	})
}

// While the end of a reconcile that did not know the ghosts is on disk, another reconcile asks for them. Who comes
// first tells, and the other does not; a queue that leaves the second delete out ends the wait as well.
func TestI3GhostThatTwoTellOfIsToldOnce(t *testing.T) {
	unseen, end, over := unseenC(), endAt(20), endAt(30)
	for _, how := range []string{"asked", "in line", "on disk", "left out", "never told"} {
		t.Run(how, func(t *testing.T) {
			hauntedSet(t, func(d *deliveredSet) {
				d.ask("pods")
				if how != "asked" && how != "never told" {
					d.enters(unseen, clusterUID)
					d.enters(over, clusterUID)
				}
				if how == "on disk" { // an earlier process put it there
					d.tails["pods"].ghosts = newGhosts()
				}
				now := &taking{clusterUID: clusterUID, behind: how == "on disk", gone: d.left(end, clusterUID)}
				if _, gone := d.take(end, now); names(gone) != "a b c" {
					t.Fatalf("%q are gone", names(gone))
				}
				if d.empty() {
					t.Fatal("the tail is forgotten though a delete is to come")
				}
				switch how {
				case "asked":
					d.enters(unseen, clusterUID)
					d.enters(over, clusterUID)
				case "left out":
					d.leaves(unseen)
				case "never told":
					d.enters(over, clusterUID)
				}
				if how != "on disk" {
					d.dropOver()
				}
				if waits := how != "left out" && how != "never told"; waits == d.empty() {
					t.Fatalf("the tail is forgotten: %t", d.empty())
				}
				if found, _ := d.take(unseen, &taking{clusterUID: clusterUID}); found == (how == "left out" || how == "never told") {
					t.Errorf("the second delete is skipped: %t", found)
				}
				if d.dropOver(); !d.empty() {
					t.Error("the tail is kept behind the second delete")
				}
			})
		})
	}
}

// The delete that was in line before the sink was open tells of a ghost first, and a reconcile that asked meanwhile is
// second.
func TestI3GhostIsToldOnceByARecordThatWasInLineBefore(t *testing.T) {
	hauntedSet(t, func(d *deliveredSet) {
		first, now := update(pods(), "c", 9), &taking{clusterUID: clusterUID}
		first.Op = change.Deleted
		d.ask("pods")
		if found, _ := d.take(first, now); found {
			t.Error("the log is said to have the delete")
		}
		d.take(endAt(20), now)
		d.enters(unseenC(), clusterUID)
		d.enters(endAt(30), clusterUID)
		if found, _ := d.take(unseenC(), now); !found {
			t.Error("the delete is told twice")
		}
		if d.take(endAt(30), now); !d.empty() {
			t.Error("the tail is kept behind the second delete")
		}
	})
}

// What the watch brought behind a reconcile may take the place of what that had found. The ghost's delete says all the
// same which reconcile found it.
func TestGhostBeforeAMergedRecordIsOfTheReconcile(t *testing.T) {
	hauntedSet(t, func(d *deliveredSet) {
		merged, now := anotherB(21), &taking{clusterUID: clusterUID}
		merged.Op, merged.Snapshot = change.Updated, nil
		begin := blind()[0]
		d.take(begin, now)
		l := listener{shape: func(*change.Record) {}}
		_, gone := d.take(merged, now)
		if batch := l.appendGone(nil, gone, merged, now.frame); len(batch) != 1 || batch[0].Snapshot != begin.Snapshot || batch[0].Key.Name != "b" {
			t.Errorf("before it are %+v", batch)
		}
	})
}

// A delete that is in line is not asked for again, whoever told it.
func TestI3GhostWhoseDeleteIsInLineIsNotAskedForAgain(t *testing.T) {
	hauntedSet(t, func(d *deliveredSet) {
		gone := update(pods(), "b", 9)
		gone.Op = change.Deleted
		d.enters(gone, clusterUID)
		entries := d.ask("pods")
		slices.SortFunc(entries, func(a, b change.Entry) int { return strings.Compare(a.Key.Name, b.Key.Name) })
		if names(entries) != "a c" {
			t.Errorf("asked, it tells of %q", names(entries))
		}
		if names(d.left(found(update(pods(), "", 20), change.SnapshotEnd, change.Gone, "20"), clusterUID)) != "a b c" {
			t.Error("a reconcile whose end comes before that delete does not look at the ghost")
		}
	})
}

// The server lost the delete of an object, and the next one of its name is saved. A log that is read from before both
// has no ghost: the delete would take the second object away.
func TestI3ObjectWhoseNameAnotherHasInTheStateIsNoGhost(t *testing.T) {
	r := newRig(t, sinkOf("s", &memory{}))
	if err := r.life(func(line *Line) {
		r.push(line, update(pods(), "a", 5))
		r.drain(line, pods())
		d := &deliveredSet{streams: references([]change.Stream{pods()}), ledger: ledger{store: r.store}, foreign: foreign(nil, clusterUID)}
		first := found(update(pods(), "a", 3), change.Replaced, change.Initial, "4")
		first.UID = "first"
		if err := readAll(d, []string{idOf(first), idOf(update(pods(), "a", 5))}); err != nil {
			t.Fatal(err)
		}
		if ghosts := d.ask("pods"); len(ghosts) > 0 {
			t.Errorf("the ghosts are %+v", ghosts)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
