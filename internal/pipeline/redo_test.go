package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// idOf is the id that the record's message carries.
func idOf(rec *change.Record) string { return rec.ID(clusterUID).String() }

// crashed returns a rig whose first life delivered and saved the record at 1, and whose sink then was given the records
// that a crash kept from being saved.
func crashed(t *testing.T, target *memory, unsaved ...*change.Record) *rig {
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
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
	err := r.life(func(line *Inlet) {
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
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 2), update(pods(), "a", 5)) // services are still silent
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	err := r.life(func(line *Inlet) {
		r.push(line, update(services(), "x", 3), update(services(), "x", 6))
		r.drain(line, services())
	})
	if want := "a/1/updated a/2/updated x/3/updated a/5/updated x/6/updated"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
	if err := r.life(func(*Inlet) {}); err != nil {
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
	err := r.life(func(line *Inlet) {
		r.push(line, replaced, gone, end)
		r.drain(line, pods())
	})
	if want := "a/1/updated a/2/updated b/9/deleted /20/snapshot.end"; err != nil || target.short() != want {
		t.Fatalf("%v; log %s, want %s", err, target.short(), want)
	}
}

// An exporter of another cluster writes to the log, too, under the same names. One that was behind the name before is
// ours.
func TestI4OthersRecordsInALogAreNoSinkOnlyObjects(t *testing.T) {
	for was, want := range map[bool]int{false: 2, true: 3} {
		target := &memory{}
		r := crashed(t, target, update(pods(), "mine", 3))
		if was {
			r.meet("ffffffff-0000")
		}
		target.log = append(target.log, update(pods(), "theirs", 4).ID("ffffffff-0000").String())
		// A history of our own cluster is ours.
		target.log = append(target.log, update(pods(), "older", 2).ID(change.NewEpoch(clusterUID, 1)).String())
		if err := r.life(func(line *Inlet) {
			if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) != want {
				t.Errorf("was behind the name %t: sink-only objects are %+v, want %d", was, sinkOnly, want)
			}
			r.push(line, update(pods(), "mine", 3))
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestI4ObjectThatOnlyTheLogKnowsIsASinkOnlyObjectUntilItsReplay(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), update(pods(), "only", 3))
	sinkOnly := func(line *Inlet) string {
		var names []string
		for _, object := range line.SinkOnly(pods()) {
			names = append(names, object.Sink+":"+object.Key.Name+"@"+object.ResourceVersion)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	if err := r.life(func(line *Inlet) {
		if got, want := sinkOnly(line), "s:a@2 s:only@3"; got != want {
			t.Errorf("sink-only objects are %q, want %q", got, want)
		}
		r.push(line, update(pods(), "a", 2), update(pods(), "only", 3))
		r.drain(line, pods())
		if got := sinkOnly(line); got != "" {
			t.Errorf("sink-only objects after the replay are %q", got)
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
	for range 2 { // also when the first life ends before the snapshot is complete
		r.requests = nil
		if err := r.life(func(*Inlet) {}); err != nil {
			t.Fatal(err)
		}
		if got, want := r.requested(), "pods newsink joining"; got != want {
			t.Errorf("requests are %q, want %q", got, want)
		}
	}
	stream := pods()
	end := &change.Record{Stream: &stream, Op: change.SnapshotEnd, Sink: "joining", Snapshot: &change.Snapshot{Reason: change.NewSink}}
	if err := r.life(func(line *Inlet) { r.push(line, end) }); err != nil {
		t.Fatal(err)
	}
	r.requests = nil
	if err := r.life(func(*Inlet) {}); err != nil || r.requested() != "" {
		t.Errorf("%v; requests after the snapshot are %q", err, r.requested())
	}
}

func TestI4SinkThatComesBackWasAbsent(t *testing.T) {
	r := crashed(t, &memory{})
	back := r.config.Sinks
	r.config.Sinks = []delivery.Sink{sinkOf("other", &memory{})}
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	r.config.Sinks, r.requests = append(r.config.Sinks, back...), nil
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods absent s, pods newsink other, services absent s"; got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}

func TestI4LogThatLostRecordsGetsASnapshot(t *testing.T) {
	target := &memory{}
	r := crashed(t, target)
	target.lost = &sink.LostError{Log: "log", Want: "1", Have: "0"}
	if err := r.life(func(*Inlet) {}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods lost s"; got != want {
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
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.requested(), "pods lost s, services lost s"; got != want {
		t.Errorf("requests are %q, want %q", got, want)
	}
}

// A record that a reconcile found carries an old version, so it alone does not tell whether it is saved.
func TestI4ObjectThatTheLogDeletedIsNoSinkOnlyObject(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 9))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	found, gone := update(pods(), "b", 2), update(pods(), "b", 5)
	found.Op, gone.Op = change.Replaced, change.Deleted
	target.log = append(target.log, idOf(found), idOf(gone))
	if err := r.life(func(line *Inlet) {
		if sinkOnly := line.SinkOnly(pods()); len(sinkOnly) > 0 {
			t.Errorf("sink-only objects are %+v; the sink was told of the delete, and would be told again", sinkOnly)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestI4SinkThatTakesMoreThanBeforeIsGivenIt(t *testing.T) {
	r := newRig(t, sinkOf("all", &memory{}), sinkOf("narrow", &memory{}))
	r.config.Sinks[1].Wants = func(s *change.Stream) bool { return s.String() == "services" }
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ takes, want string }{
		{"services pods", "pods newsink narrow"},
		{"pods", "pods newsink narrow"},        // still owed
		{"services", "services absent narrow"}, // it has missed some services, and pods are nothing to it
	} {
		r.config.Sinks[1].Wants = func(s *change.Stream) bool { return strings.Contains(c.takes, s.String()) }
		r.requests = nil
		if err := r.life(func(*Inlet) {}); err != nil {
			t.Fatal(err)
		}
		if got := r.requested(); got != c.want {
			t.Errorf("taking %s, requests are %q, want %q", c.takes, got, c.want)
		}
	}
}

func TestI3StreamThatIsNotConfiguredDoesNotContinueWhereItWas(t *testing.T) {
	r := newRig(t, sinkOf("s", &memory{}))
	both := r.config.Sources
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
	}); err != nil {
		t.Fatal(err)
	}
	r.config.Sources = both[:1]
	r.line <- nil // the rig waits for two sources
	if err := r.life(func(*Inlet) {
		left, _, err := r.store.Position("services")
		kept, _, err2 := r.store.Position("pods")
		if err != nil || err2 != nil || left.Configured() || left.UnderWay() || kept.Selector != "" {
			t.Errorf("positions are %+v and %+v, %v, %v", left, kept, err, err2)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestI4WhatWasFoundAndIsGoneSinceIsNoCorrection: a mark may lie far after the positions, and the log after it then
// holds what a reconcile found of an object whose delete is saved by now. Nothing is left to be looked for again.
func TestI4WhatWasFoundAndIsGoneSinceIsNoCorrection(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target))
	gone := update(pods(), "a", 7)
	gone.Op = change.Deleted
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "b", 1), found(update(pods(), "a", 2), change.Replaced, change.Gone, "5"), gone, bookmark(pods(), "9"))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.Open(t.Context(), r.dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Commit(checkpoint.Batch{Marks: map[string]sink.Mark{"s": "1"}}), store.Close()); err != nil {
		t.Fatal(err)
	}
	if err := r.life(func(line *Inlet) { r.push(line, update(pods(), "b", 10)); r.drain(line, pods()) }); err != nil {
		t.Fatal(err)
	}
	if asked := r.requested(); asked != "" {
		t.Errorf("asked for %s, want nothing", asked)
	}
}

// TestI3WhatIsUnderWayWhenALogIsLostIsComparedAgain: the log is read anew, and says again what the delete that is being
// written was told to have ended.
func TestI3WhatIsUnderWayWhenALogIsLostIsComparedAgain(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "b", 3), update(pods(), "c", 9))
	target.fault = func(context.Context, []sink.Message) error {
		target.fault = nil
		target.mu.Lock()
		defer target.mu.Unlock()
		target.lost = &sink.LostError{Log: "log", Want: "3", Have: "2"}
		return errors.New("connection lost")
	}
	gone := deleted("b", 3)
	gone.Position = change.Position{ResourceVersion: "2"}
	if err := r.life(func(line *Inlet) {
		r.push(line, gone)
		r.drain(line, pods())
		if got := line.SinkOnly(pods()); len(got) != 1 || got[0].Key.Name != "c" {
			t.Errorf("the sink-only objects are %+v", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := "a/1/updated b/3/updated c/9/updated b/3/deleted"; target.short() != want {
		t.Errorf("log is %s, want %s", target.short(), want)
	}
}
