package pipeline

import (
	"context"
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// idOf is the id that the record's message carries.
func idOf(rec *change.Record) string { return rec.ID(clusterUID).String() }

// crashed returns a rig whose first life delivered and saved the record at 1, and whose sink then was given the records
// that a crash kept from being saved.
func crashed(t *testing.T, target *memory, unsaved ...*change.Record) *rig {
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Line) {
		r.push(line, update(pods(), "a", 1))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	for _, rec := range unsaved {
		target.log = append(target.log, idOf(rec))
	}
	return r
}

func TestI3ReplayAfterACrashRepeatsNothing(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), update(pods(), "b", 3))
	err := r.life(func(line *Line) {
		r.push(line, update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "a", 4))
		r.drain(line, pods())
	})
	if want := "a/1/updated a/2/updated b/3/updated a/4/updated"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
	if r.requested() != "" {
		t.Errorf("a known sink with an intact log asked for %s", r.requested())
	}
}

// Were the mark to move to the end of the log with the first write, a second crash would find the rest of the first
// one's records before the mark, and write them again.
func TestI3MarkStaysBeforeWhatIsStillToBeReplayed(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), update(services(), "x", 3))
	if err := r.life(func(line *Line) {
		r.push(line, update(pods(), "a", 2), update(pods(), "a", 5)) // services are still silent
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	err := r.life(func(line *Line) {
		r.push(line, update(services(), "x", 3), update(services(), "x", 6))
		r.drain(line, services())
	})
	if want := "a/1/updated a/2/updated x/3/updated a/5/updated x/6/updated"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
	if err := r.life(func(*Line) {}); err != nil {
		t.Fatal(err)
	}
	if last := target.opens[len(target.opens)-1]; last != "5" {
		t.Errorf("the log is opened at mark %s, want 5: everything was replayed", last)
	}
}

func TestI3ReconcileAfterACrashRepeatsNothing(t *testing.T) {
	deleted := update(pods(), "b", 9)
	deleted.Op = change.Deleted
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), deleted)
	snapshot := &change.Snapshot{ID: "20.1", Reason: change.Gone, ResourceVersion: "20"}
	replaced, gone, end := update(pods(), "a", 2), update(pods(), "b", 1), update(pods(), "", 20)
	replaced.Op, replaced.Snapshot, replaced.Position = change.Replaced, snapshot, change.Position{}
	gone.Op, gone.FinalStateUnknown, gone.Snapshot, gone.Position = change.Deleted, true, snapshot, change.Position{}
	end.Op, end.Snapshot, end.UID = change.SnapshotEnd, snapshot, ""
	err := r.life(func(line *Line) {
		r.push(line, replaced, gone, end)
		r.drain(line, pods())
	})
	if want := "a/1/updated a/2/updated b/9/deleted /20/snapshot.end"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
}

func TestI4ObjectThatOnlyTheLogKnowsIsInTheInventory(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), update(pods(), "ghost", 3))
	if err := r.life(func(*Line) {
		ghost, found, err := r.store.Lookup("pods", change.Key{Namespace: "n", Name: "ghost"})
		if err != nil || !found || ghost.UID != "uid-ghost" || ghost.ResourceVersion != "" {
			t.Errorf("ghost is %+v, %t, %v; without it its delete would be missed", ghost, found, err)
		}
		if a, _, _ := r.store.Lookup("pods", change.Key{Namespace: "n", Name: "a"}); a.ResourceVersion != "1" {
			t.Errorf("a known object became %+v", a)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestI4NewSinkAsksForASnapshotOfWhatItWants(t *testing.T) {
	r := crashed(t, &memory{})
	joining := sinkOf("joining", &memory{})
	joining.Wants = func(s *change.Stream) bool { return s.String() == "pods" }
	r.config.Sinks = append(r.config.Sinks, joining)
	if err := r.life(func(*Line) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods newsink joining"; got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}

func TestI4LogThatLostRecordsGetsASnapshot(t *testing.T) {
	target := &memory{}
	r := crashed(t, target)
	target.lost = &sink.LostError{Log: "log", Want: "1", Have: "0"}
	if err := r.life(func(*Line) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods lost s, services lost s"; got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}

func TestI4LogThatIsLostWhileRunningGetsASnapshot(t *testing.T) {
	target := &memory{}
	broken := false
	target.fault = func(context.Context, []sink.Message) error {
		if broken {
			return nil
		}
		broken = true
		target.lost = &sink.LostError{Log: "log", Want: "1", Have: "0"}
		return errors.New("the stream is gone")
	}
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Line) {
		r.push(line, update(pods(), "a", 1))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods lost s, services lost s"; got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}
