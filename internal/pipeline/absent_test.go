package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// comeback makes the records of the full snapshot with which a sink comes back to the pods: it has missed what is gone.
func (r *rig) comeback(line *Inlet, name string) {
	r.t.Helper()
	r.comebackTo(line, name, pods())
}

// comebackTo is comeback for a stream.
func (r *rig) comebackTo(line *Inlet, name string, stream change.Stream) {
	r.t.Helper()
	r.returnOf(line, name, stream, func() {})
}

// returnOf is comebackTo with something that happens when the source has read what is gone.
func (r *rig) returnOf(line *Inlet, name string, stream change.Stream, meanwhile func()) {
	r.t.Helper()
	pendingSnapshots, err := r.store.PendingSnapshots()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range pendingSnapshots {
		if d.Sink != name || d.Stream != stream.String() || d.Reason != change.Absent {
			continue
		}
		r.drain(line, stream)
		frame := func(op change.Op) *change.Record {
			rec := found(update(stream, "", 90), op, change.Absent, "90")
			rec.Sink, rec.Key, rec.UID, rec.Snapshot.Generation = name, change.Key{}, "", d.Generation
			return rec
		}
		r.push(line, frame(change.Gap), frame(change.SnapshotBegin))
		sinkOnly := line.SinkOnly(stream)
		meanwhile()
		for _, object := range sinkOnly {
			told := found(update(stream, object.Key.Name, 0), change.Deleted, change.Absent, "90")
			told.UID, told.ResourceVersion, told.Sink = object.UID, object.ResourceVersion, object.Sink
			r.push(line, told)
		}
		r.push(line, frame(change.SnapshotEnd))
		r.drain(line, stream)
	}
}

// live is a life with the sinks, which ends well.
func (r *rig) live(sinks []delivery.Sink, use func(*Inlet)) {
	r.t.Helper()
	r.config.Sinks = sinks
	if err := r.life(use); err != nil {
		r.t.Fatal(err)
	}
}

func went(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Op = change.Deleted
	return rec
}

// A sink that is stopped and whose queue is full leaves: the others go on, positions move, and what waited is not kept.
// When it is mended it is told what is gone, and nothing of what came and went meanwhile.
func TestI1I4ASinkThatIsStoppedHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, mended := broken("the password is wrong")
		bad, good := &memory{}, &memory{}
		s := sinkOf("bad", bad)
		s.Queue = fifo.Limit{Bytes: 1 << 20, Records: 3}
		r := newRig(t, s, sinkOf("good", good))
		var absent []string
		r.config.Observer.Absent = func(name string) { r.note(&absent, name) }
		err := r.life(func(line *Inlet) {
			a := update(pods(), "a", 5)
			a.Op = change.Added
			r.push(line, a)
			r.drain(line, pods())
			bad.mu.Lock()
			bad.fault = fault
			bad.mu.Unlock()
			for v := range 50 {
				r.push(line, update(pods(), "b", 6+v))
			}
			made := update(pods(), "short", 60)
			made.Op = change.Added
			r.push(line, made, went("short", 61), went("a", 62))
			r.drain(line, pods())
			if got := r.position(pods()); got != "62" || len(absent) != 1 {
				t.Errorf("position is %q, want 62; absent %q", got, absent)
			}
			if bad.short() != "a/5/added" {
				t.Errorf("the sink has %s", bad.short())
			}
			mended.Store(true)
			for !strings.Contains(r.requested(), "pods absent bad") {
				time.Sleep(time.Minute)
			}
			r.comeback(line, "bad")
			r.push(line, update(pods(), "b", 91))
			r.drain(line, pods())
		})
		if err != nil {
			t.Error(err)
		}
		const want = "a/5/added /90/gap /90/snapshot.begin a/5/deleted /90/snapshot.end b/91/updated"
		if got := bad.short(); got != want {
			t.Errorf("the sink has %s, want %s", got, want)
		}
	})
}

// A quiet stream that waits for a stopped sink is let go, too, before the API server's history ends.
func TestI4ASinkThatIsStoppedForLongLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault, _ := broken("fenced")
		good := &memory{}
		r := newRig(t, sinkOf("bad", &memory{fault: fault}), sinkOf("good", good))
		err := r.life(func(line *Inlet) {
			r.push(line, update(pods(), "a", 5))
			good.eventually(t, "a/5/updated")
			time.Sleep(3 * time.Minute) // a sink that is stopped holds up nobody for so long
			if got := r.position(pods()); got != "5" {
				t.Errorf("position is %q, want 5", got)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A sink that leaves the configuration and returns is told what is gone since, also in which life it went.
func TestI4ASinkThatReturnsIsToldWhatIsGone(t *testing.T) {
	lake, other := &memory{}, &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", other))
	both := r.config.Sinks
	r.live(both, func(line *Inlet) {
		r.push(line, update(pods(), "a", 5), update(pods(), "b", 6), update(pods(), "c", 7))
		r.drain(line, pods())
	})
	r.live(both[1:], func(line *Inlet) { r.push(line, went("a", 8)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) {
		again := update(pods(), "b", 10)
		again.Op, again.UID = change.Added, "uid-b-2"
		r.push(line, went("b", 9), again)
		r.drain(line, pods())
	})
	requests := ""
	r.live(both, func(line *Inlet) {
		requests = r.requested()
		r.comeback(line, "lake")
	})
	if want := "pods absent lake, services absent lake"; requests != want {
		t.Errorf("asked for %s, want %s", requests, want)
	}
	before, after, _ := strings.Cut(lake.short(), "snapshot.begin ")
	if before != "a/5/updated b/6/updated c/7/updated /90/gap /90/" || !strings.Contains(after, "a/5/deleted") ||
		!strings.Contains(after, "b/6/deleted") || strings.Count(after, "deleted") != 2 {
		t.Errorf("the sink has %s", lake.short())
	}
	absences, err := r.absences()
	if err != nil || fmt.Sprint(absences) != "[lake services]" {
		t.Errorf("%v; absent %v", err, absences)
	}
}

func (r *rig) absences() (names []string, err error) {
	store, err := checkpoint.Open(r.t.Context(), r.dir, checkpoint.Options{})
	if err != nil {
		return nil, err
	}
	absences, err := store.Absences()
	for _, a := range absences {
		names = append(names, a.Sink+" "+a.Stream)
	}
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	return names, err
}

// A sink that was given its gap alone before it left the configuration again misses what goes from then on.
func TestI4ASinkThatLeavesWhileItReturnsIsToldWhatIsGone(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	both := r.config.Sinks
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 5)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) { r.drain(line, pods()) })
	r.live(both, func(line *Inlet) {
		gap := found(update(pods(), "", 90), change.Gap, change.Absent, "90")
		gap.Sink, gap.Key, gap.UID, gap.Snapshot.Generation = "lake", change.Key{}, "", r.generation("lake", pods())
		r.push(line, gap)
		r.drain(line, pods())
	})
	r.live(both[1:], func(line *Inlet) { r.push(line, went("a", 91)); r.drain(line, pods()) })
	r.live(both, func(line *Inlet) { r.comeback(line, "lake") })
	if got := lake.short(); strings.Count(got, "deleted") != 1 || !strings.Contains(got, "a/5/deleted") {
		t.Errorf("the sink has %s", got)
	}
}

// What a crash kept from being saved lies in the log of the sink alone: it is told that it is gone.
func TestI4ASinkThatReturnsIsToldWhatItsLogAloneHas(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	both := r.config.Sinks
	if err := r.life(func(line *Inlet) { r.push(line, update(pods(), "a", 5)); r.drain(line, pods()) }); err != nil {
		t.Fatal(err)
	}
	lake.append([]sink.Message{{ID: update(pods(), "crashed", 6).ID(clusterUID).String()}})
	lake.append([]sink.Message{{ID: update(pods(), "stranger", 6).ID("ffffffff-0000").String()}})
	r.config.Sinks = both[1:]
	if err := r.life(func(line *Inlet) {
		made := update(pods(), "crashed", 6)
		made.Op = change.Added
		r.push(line, made, went("crashed", 7))
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	r.config.Sinks = both
	if err := r.life(func(line *Inlet) { r.comeback(line, "lake") }); err != nil {
		t.Fatal(err)
	}
	if got := lake.short(); strings.Count(got, "deleted") != 1 || !strings.Contains(got, "crashed/6/deleted") {
		t.Errorf("the sink has %s", got)
	}
}

// What the log of a sink that comes back holds may be deleted for all after its gap: it is told so once.
func TestI3ASinkThatReturnsIsToldADeleteOnce(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	both := r.config.Sinks
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 4), update(pods(), "b", 5)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) { r.push(line, update(pods(), "a", 6), went("b", 7)); r.drain(line, pods()) })
	lake.append([]sink.Message{{ID: update(pods(), "a", 6).ID(clusterUID).String()}})
	r.live(both, func(line *Inlet) {
		gap := found(update(pods(), "", 90), change.Gap, change.Absent, "90")
		gap.Sink, gap.Key, gap.UID, gap.Snapshot.Generation = "lake", change.Key{}, "", r.generation("lake", pods())
		r.drain(line, pods())
		r.push(line, gap, went("a", 8))
		r.comeback(line, "lake")
	})
	if got := lake.short(); strings.Count(got, "deleted") != 2 || !strings.Contains(got, "b/5/deleted") {
		t.Errorf("the sink has %s", got)
	}
}

// Of one key, a sink may have missed the deletes of two objects.
func TestI4ASinkThatReturnsIsToldOfTwoObjectsOfOneKey(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	both := r.config.Sinks
	next := func(version int) *change.Record {
		rec := update(pods(), "a", version)
		rec.UID = "uid-a-2"
		return rec
	}
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 5)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) { r.push(line, went("a", 6), next(7)); r.drain(line, pods()) })
	lake.append([]sink.Message{{ID: next(7).ID(clusterUID).String()}})
	r.live(both, func(line *Inlet) { r.drain(line, pods()) }) // it is noted what its log has
	r.live(both[1:], func(line *Inlet) {
		gone := next(8)
		gone.Op = change.Deleted
		r.push(line, gone)
		r.drain(line, pods())
	})
	r.live(both, func(line *Inlet) { r.comeback(line, "lake") })
	if got := lake.short(); !strings.Contains(got, "a/5/deleted") || !strings.Contains(got, "a/7/deleted") || strings.Count(got, "deleted") != 2 {
		t.Errorf("the sink has %s", got)
	}
}

// The end of an object that nobody saw shows in the object that took its place.
func TestI4ASinkThatReturnsIsToldOfAnEndThatNobodySaw(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	both := r.config.Sinks
	next := func(op change.Op, version int) *change.Record {
		rec := update(pods(), "a", version)
		rec.Op, rec.UID = op, "uid-a-2"
		return rec
	}
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 5)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) {
		r.push(line, next(change.Added, 7), next(change.Deleted, 8))
		r.drain(line, pods())
	})
	r.live(both, func(line *Inlet) { r.comeback(line, "lake") })
	if got := lake.short(); !strings.Contains(got, "a/5/deleted") || strings.Count(got, "deleted") != 1 {
		t.Errorf("the sink has %s", got)
	}
}

// generation is that of the snapshot with which the sink is to come back.
func (r *rig) generation(name string, stream change.Stream) uint64 {
	r.t.Helper()
	pendingSnapshots, err := r.store.PendingSnapshots()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range pendingSnapshots {
		if d.Sink == name && d.Stream == stream.String() && d.Reason == change.Absent {
			return d.Generation
		}
	}
	r.t.Fatalf("sink %s does not come back", name)
	return 0
}

// A stream that came while a sink was not configured is the sink's when it returns, with the gap that the others have.
func TestI4ASinkThatReturnsIsGivenStreamsThatCameMeanwhile(t *testing.T) {
	lake := &memory{}
	r := newRig(t, sinkOf("lake", lake), sinkOf("other", &memory{}))
	sinks, sources := r.config.Sinks, r.config.Sources
	live := func(sinks []delivery.Sink, sources []Source, use func(*Inlet)) {
		t.Helper()
		r.config.Sinks, r.config.Sources = sinks, sources
		if err := r.life(use); err != nil {
			t.Fatal(err)
		}
	}
	another := sources[0]
	another.Stream.Resource.Name = "configmaps"
	live(sinks, []Source{another, sources[1]}, func(line *Inlet) { r.push(line, update(services(), "a", 5)); r.drain(line, services()) })
	live(sinks[1:], sources, func(line *Inlet) { r.push(line, update(pods(), "b", 6)); r.drain(line, pods(), services()) })
	requests := ""
	live(sinks, sources, func(line *Inlet) {
		requests = r.requested()
		r.comeback(line, "lake")
		r.push(line, update(pods(), "b", 91))
		r.drain(line, pods())
	})
	if !strings.Contains(requests, "pods absent lake") || !strings.Contains(lake.short(), "b/91/updated") {
		t.Errorf("asked for %s, and the sink has %s", requests, lake.short())
	}
}

// cameBehindAReturn is a sink that spools, and whose return was cut short. That lies on disk with what came after its
// gap. What a killed process said last came into its log after that.
func cameBehindAReturn(t *testing.T) (r *rig, lake *memory) {
	lake = &memory{}
	r = newRig(t, spooling("lake", lake, 2), sinkOf("other", &memory{}))
	both := r.config.Sinks
	pod := func(op change.Op, uid string, version int) *change.Record {
		rec := update(pods(), "x", version)
		rec.Op, rec.UID = op, uid
		return rec
	}
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 5)); r.drain(line, pods()) })
	r.live(both[1:], func(line *Inlet) {
		r.push(line, pod(change.Added, "first", 6), pod(change.Deleted, "first", 7))
		r.drain(line, pods())
	})
	lake.hang()
	r.live(both, func(line *Inlet) {
		gap := found(update(pods(), "", 8), change.Gap, change.Absent, "8")
		gap.Sink, gap.Key, gap.UID, gap.Snapshot.Generation = "lake", change.Key{}, "", r.generation("lake", pods())
		r.drain(line, pods())
		r.push(line, gap, update(pods(), "a", 9), pod(change.Added, "second", 10), pod(change.Deleted, "second", 11), pod(change.Added, "third", 12))
		r.drain(line, pods()) // to disk
	})
	lake.fault = nil
	lake.append([]sink.Message{{ID: pod(change.Added, "first", 6).ID(clusterUID).String()}})
	return r, lake
}

// What a killed process said last may come into the log after a return that was cut short, and lies on disk: that does
// not tell of its end. It is told before the object that has its place, and not once more with the next return.
func TestI3I4WhatCameBehindAReturnOnDiskEndsBeforeWhatTakesItsPlace(t *testing.T) {
	r, lake := cameBehindAReturn(t)
	r.live(r.config.Sinks, func(line *Inlet) {
		r.await("what is on disk", func() bool { return strings.HasSuffix(lake.short(), "x/12/added") })
		r.comeback(line, "lake")
		r.await("the end of the return", func() bool { return strings.HasSuffix(lake.short(), "snapshot.end") })
	})
	const want = "a/5/updated x/6/added /8/gap a/9/updated x/6/deleted x/10/added x/11/deleted x/12/added " +
		"/90/gap /90/snapshot.begin /90/snapshot.end"
	if got := lake.short(); got != want {
		t.Errorf("the sink has %s, want %s", got, want)
	}
}

// A source has read what is to be told with the next return, and has to wait. Meanwhile the listener tells one of the
// deletes, and the state knows of it. The sink is told of it once.
func TestI3ADeleteThatASourceHoldsIsNotToldOnceMore(t *testing.T) {
	r, lake := cameBehindAReturn(t)
	release := lake.hang()
	r.live(r.config.Sinks, func(line *Inlet) {
		r.returnOf(line, "lake", pods(), func() {
			release()
			r.await("what the listener tells", func() bool {
				missed, err := r.store.Missed(checkpoint.Subscription{Sink: "lake", Stream: "pods"}, clusterUID)
				return err == nil && len(missed) == 0
			})
			r.push(line, update(pods(), "a", 13))
			r.drain(line, pods()) // so that the line knows that it is saved
		})
		r.await("the end of the return", func() bool { return strings.HasSuffix(lake.short(), "snapshot.end") })
	})
	if got := lake.short(); strings.Count(got, "x/6/deleted") != 1 {
		t.Errorf("the sink has %s", got)
	}
}
