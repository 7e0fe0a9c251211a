package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// with is a life in which another stream is configured in the place of the pods.
func (r *rig) with(stream change.Stream, use func(*Inlet)) {
	r.t.Helper()
	configured := r.config.Sources
	defer func() { r.config.Sources = configured }()
	other := configured[0]
	other.Stream = stream
	r.config.Sources = []Source{other, configured[1]}
	if err := r.life(use); err != nil {
		r.t.Fatal(err)
	}
}

func configMaps() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}}
}

// withoutPods is a life in which the pods are not configured.
func (r *rig) withoutPods() {
	r.t.Helper()
	r.with(configMaps(), func(line *Inlet) { r.push(line, update(services(), "x", 10)); r.drain(line, services()) })
}

// passDisk is such a life, in which the sink comes to what is behind its disk.
func (r *rig) passDisk(target *memory) {
	r.t.Helper()
	r.with(configMaps(), func(line *Inlet) {
		r.push(line, update(services(), "x", 10))
		r.await("what comes behind the disk", func() bool { return strings.HasSuffix(target.short(), "x/10/updated") })
	})
}

// awaitEnd waits until the sink has the end of a snapshot.
func (r *rig) awaitEnd(target *memory) {
	r.t.Helper()
	r.await("its end", func() bool { return strings.HasSuffix(target.short(), "snapshot.end") })
}

// TestI4WhatALogHoldsOfAStreamThatIsNotConfiguredIsRemembered: a crash left more in the sink's log than the state
// knows. The stream is not configured in the next life, and the mark moves on. When it is back, the sink is told what
// is gone of that, and of a delete that it has not once more.
func TestI4WhatALogHoldsOfAStreamThatIsNotConfiguredIsRemembered(t *testing.T) {
	target := &memory{}
	made := update(pods(), "b", 3)
	made.Op = change.Added
	r := crashed(t, target, went("a", 2), made)
	r.with(configMaps(), func(line *Inlet) {
		for version := range 5 {
			r.push(line, update(services(), "x", 10+version))
		}
		r.drain(line, services())
	})
	if err := r.life(func(line *Inlet) {
		r.push(line, bookmark(pods(), "80"))
		r.comeback(line, "s")
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.short(); !strings.Contains(got, "b/3/deleted") || strings.Count(got, "deleted") != 2 || strings.Count(got, "/90/gap") != 1 {
		t.Errorf("the sink has %s", got)
	}
}

// TestI4ASinkComesBackToOneStreamAlone: what it misses of one stream is no reason to give it a gap in the others.
func TestI4ASinkComesBackToOneStreamAlone(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "b", 3))
	r.withoutPods()
	if err := r.life(func(line *Inlet) {
		r.push(line, update(services(), "x", 11))
		r.drain(line, services())
	}); err != nil {
		t.Fatal(err)
	}
	if want := "pods absent s"; r.requested() != want || !strings.HasSuffix(target.short(), "x/11/updated") {
		t.Errorf("asked for %q, want %q; the sink has %s", r.requested(), want, target.short())
	}
}

// TestI4ASinkThatTakesAStreamAgainIsToldWhatIsGone: it has not taken the pods for a while. What is gone since, it is
// told, and so of what only its log knew after a crash. Its other streams have no gap.
func TestI4ASinkThatTakesAStreamAgainIsToldWhatIsGone(t *testing.T) {
	target := &memory{}
	made := update(pods(), "b", 3)
	made.Op = change.Added
	r := crashed(t, target, update(pods(), "a", 2), made)
	r.config.Sinks[0].Wants = func(s *change.Stream) bool { return s.String() == "services" }
	if err := r.life(func(line *Inlet) {
		r.push(line, made, went("b", 4), went("a", 5), update(services(), "x", 10))
		r.drain(line, pods(), services())
	}); err != nil || r.requested() != "" {
		t.Fatalf("%v; asked for %q", err, r.requested())
	}
	r.config.Sinks[0].Wants = nil
	if err := r.life(func(line *Inlet) { r.comeback(line, "s") }); err != nil {
		t.Fatal(err)
	}
	const want = "a/1/updated a/2/updated b/3/added x/10/updated /90/gap /90/snapshot.begin a/2/deleted b/3/deleted /90/snapshot.end"
	got := strings.Replace(target.short(), "b/3/deleted a/2/deleted", "a/2/deleted b/3/deleted", 1) // in any order
	if got != want || r.requested() != "pods absent s" {
		t.Errorf("the sink has\n%s, want\n%s; asked for %q", got, want, r.requested())
	}
}

// TestI4WhatALogHoldsIsOfTheStreamThatReadItLast: the state still knows the stream of all namespaces, which another one
// has taken the namespace from.
func TestI4WhatALogHoldsIsOfTheStreamThatReadItLast(t *testing.T) {
	target := &memory{}
	r := crashed(t, target)
	part := pods()
	part.Namespace = "n"
	r.with(part, func(line *Inlet) { r.push(line, update(part, "a", 2)); r.drain(line, part) })
	target.log = append(target.log, idOf(update(part, "a", 3)))
	r.with(configMaps(), func(line *Inlet) {
		r.push(line, update(services(), "x", 10))
		r.drain(line, services())
		absences, err := r.store.Absences()
		if err != nil || len(absences) != 1 || absences[0].Stream != part.String() {
			t.Errorf("the absences are %+v, %v, want one of %s", absences, err, part)
		}
	})
}

// TestI3WhatALogHoldsIsKnownOfAStreamThatItsSinkMisses: a crash left a delete in the log of a sink that is not
// configured then, so that the others are told of it. It returns while the stream is not configured, and is not told
// once more when that is back.
func TestI3WhatALogHoldsIsKnownOfAStreamThatItsSinkMisses(t *testing.T) {
	target := &memory{}
	r := newRig(t, sinkOf("s", target), sinkOf("other", &memory{}))
	both := r.config.Sinks
	r.live(both, func(line *Inlet) { r.push(line, update(pods(), "a", 1)); r.drain(line, pods()) })
	target.log = append(target.log, idOf(went("a", 2)))
	r.live(both[1:], func(line *Inlet) { r.push(line, went("a", 2), update(pods(), "b", 3)); r.drain(line, pods()) })
	r.config.Sinks = both
	r.with(configMaps(), func(line *Inlet) {
		r.comebackTo(line, "s", services())
		r.push(line, update(services(), "x", 91))
		r.drain(line, services())
	})
	r.live(both, func(line *Inlet) { r.comeback(line, "s") })
	if got := target.short(); strings.Count(got, "deleted") != 1 || strings.Count(got, "/90/gap") != 2 {
		t.Errorf("the sink has %s", got)
	}
}

// TestI4ALogThatLosesRecordsOwesStreamsThatAreNotConfigured: when such a stream is back, nobody else would know that
// the log has lost what it had of it.
func TestI4ALogThatLosesRecordsOwesStreamsThatAreNotConfigured(t *testing.T) {
	target := &memory{}
	r := crashed(t, target)
	target.lost = &sink.LostError{Log: "log", Want: "1", Have: "0"}
	r.withoutPods()
	r.requests = nil
	if err := r.life(func(*Inlet) {}); err != nil || !strings.Contains(r.requested(), "pods lost s") {
		t.Errorf("%v; asked for %q", err, r.requested())
	}
}

// TestI4WhatIsSavedOfAStreamThatIsNotConfiguredIsNoAbsence: after a clean stop there is nothing to remember.
func TestI4WhatIsSavedOfAStreamThatIsNotConfiguredIsNoAbsence(t *testing.T) {
	target := &memory{}
	r := crashed(t, target)
	r.withoutPods()
	if err := r.life(func(line *Inlet) { r.push(line, update(pods(), "a", 11)); r.drain(line, pods()) }); err != nil {
		t.Fatal(err)
	}
	if got := r.requested(); got != "" {
		t.Errorf("asked for %q", got)
	}
}

// onDisk is a rig with records of pods on disk for its sink, which has taken none of them.
func onDisk(t *testing.T, target *memory, records ...*change.Record) *rig {
	t.Helper()
	r := newRig(t, spooling("s", target, 2), sinkOf("fast", &memory{}))
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1))
		r.drain(line, pods())
		target.hang()
		r.push(line, records...)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	target.fault = nil
	return r
}

// TestI4I9WhatIsOnDiskOfAStreamThatIsNotConfiguredIsMissed: it does not leave, and when the stream is back the sink is
// told what is gone.
func TestI4I9WhatIsOnDiskOfAStreamThatIsNotConfiguredIsMissed(t *testing.T) {
	target := &memory{}
	r := onDisk(t, target, update(pods(), "b", 2), update(pods(), "c", 3), went("a", 4), update(pods(), "b", 5), update(pods(), "c", 6))
	r.passDisk(target)
	r.live(r.config.Sinks, func(line *Inlet) { r.comeback(line, "s"); r.awaitEnd(target) })
	const want = "a/1/updated x/10/updated /90/gap /90/snapshot.begin a/3/deleted /90/snapshot.end"
	if got := target.short(); got != want {
		t.Errorf("the sink has %s, want %s", got, want)
	}
}

// TestI3WhatIsOnDiskAndInTheLogOfAStreamThatIsNotConfiguredIsToldOnce: a crash came between the write of what was on
// disk and the note of that. The sink has the delete, and is not told of it once more when the stream is back.
func TestI3WhatIsOnDiskAndInTheLogOfAStreamThatIsNotConfiguredIsToldOnce(t *testing.T) {
	target, waits := &memory{}, []*change.Record{update(pods(), "b", 2), update(pods(), "c", 3), went("a", 4), update(pods(), "b", 5)}
	r := onDisk(t, target, append(waits, update(pods(), "c", 6))...)
	for _, rec := range waits {
		target.log = append(target.log, idOf(rec))
	}
	r.passDisk(target)
	r.live(r.config.Sinks, func(line *Inlet) { r.comeback(line, "s"); r.awaitEnd(target) })
	const want = "a/1/updated b/2/updated c/3/updated a/4/deleted b/5/updated x/10/updated /90/gap /90/snapshot.begin /90/snapshot.end"
	if got := target.short(); got != want {
		t.Errorf("the sink has %s, want %s", got, want)
	}
}

// TestI3WhatIsOnDiskIsTheHeirs: a stream of the object's namespace has taken its place.
func TestI3WhatIsOnDiskIsTheHeirs(t *testing.T) {
	target := &memory{}
	r := onDisk(t, target, update(pods(), "b", 2), update(pods(), "c", 3), went("a", 4), update(pods(), "b", 5), update(pods(), "c", 6))
	heir := pods()
	heir.Namespace = "n"
	r.inherit(heir)
	r.with(heir, func(line *Inlet) {
		r.push(line, update(heir, "b", 10))
		r.await("what comes behind the disk", func() bool { return strings.HasSuffix(target.short(), "b/10/updated") })
	})
	const want = "a/1/updated b/2/updated c/3/updated a/4/deleted b/5/updated c/6/updated b/10/updated"
	if got := target.short(); got != want {
		t.Errorf("the sink has %s, want %s", got, want)
	}
}

// TestI4WhatIsOnDiskIsTheHeirsThatHasLeft: a stream of one namespace has taken its objects from that of all, of which
// the state still knows the rest, and is not configured any more either. Its sink lacks what is on disk of them, and
// what lies in a gap it lacks of both streams.
func TestI4WhatIsOnDiskIsTheHeirsThatHasLeft(t *testing.T) {
	gap := found(update(pods(), "", 4), change.Gap, change.Gone, "4")
	gap.Key, gap.UID = change.Key{}, ""
	for _, each := range []struct {
		what   string
		first  *change.Record
		absent string
	}{
		{"an object", update(pods(), "b", 2), "n/pods"},
		{"a gap", gap, "n/pods pods"},
	} {
		t.Run(each.what, func(t *testing.T) {
			target := &memory{}
			r := onDisk(t, target, each.first, update(pods(), "c", 5), update(pods(), "b", 6), update(pods(), "c", 7))
			heir := pods()
			heir.Namespace = "n"
			r.inherit(heir)
			r.passDisk(target)
			if got := r.absentFrom(); got != each.absent {
				t.Errorf("the sink is absent from %q, want %q", got, each.absent)
			}
		})
	}
}

// absentFrom are the streams of which the state says that a sink is absent from them.
func (r *rig) absentFrom() string {
	r.t.Helper()
	store, err := checkpoint.Open(r.t.Context(), r.dir, checkpoint.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	absences, err := store.Absences()
	if err := errors.Join(err, store.Close()); err != nil {
		r.t.Error(err)
	}
	var streams []string
	for _, a := range absences {
		streams = append(streams, a.Stream)
	}
	return strings.Join(streams, " ")
}

// TestI3ALogIsTheHeirs: what a crash left of the stream of all namespaces is skipped when that of one brings it again.
func TestI3ALogIsTheHeirs(t *testing.T) {
	target := &memory{}
	r := crashed(t, target, update(pods(), "a", 2), update(pods(), "b", 3))
	heir := pods()
	heir.Namespace = "n"
	r.inherit(heir)
	r.with(heir, func(line *Inlet) {
		r.push(line, update(heir, "a", 2), update(heir, "b", 3), update(heir, "a", 4))
		r.drain(line, heir)
	})
	if want := "a/1/updated a/2/updated b/3/updated a/4/updated"; target.short() != want || r.requested() != "" {
		t.Errorf("the sink has %s, want %s; asked for %q", target.short(), want, r.requested())
	}
}

// TestI4WhatIsOnDiskOfOneNamespaceTellsNothingOfTheOthers: a crash left an object of one namespace in the log of a
// sink, for which records of another namespace are on disk. These are further on. The stream of all takes over from
// both, and is to tell whether the object is gone: what comes from disk does not pass it.
func TestI4WhatIsOnDiskOfOneNamespaceTellsNothingOfTheOthers(t *testing.T) {
	n, m, target := pods(), pods(), &memory{}
	n.Namespace, m.Namespace = "n", "m"
	r := newRig(t, spooling("s", target, 2), sinkOf("fast", &memory{}))
	both := r.config.Sources
	parts := slices.Clone(both)
	parts[0].Stream, parts[1].Stream = n, m
	r.config.Sources = parts
	if err := r.life(func(line *Inlet) {
		r.push(line, update(n, "a", 1))
		r.drain(line, n)
		target.hang()
		for version := 51; version < 56; version++ {
			rec := update(m, "x", version)
			rec.Key.Namespace = "m"
			r.push(line, rec)
		}
		r.drain(line, m)
	}); err != nil {
		t.Fatal(err)
	}
	target.fault, r.config.Sources = nil, both
	target.log = append(target.log, idOf(update(n, "only", 3)))
	r.inherit(pods())
	if err := r.life(func(line *Inlet) {
		r.await("what is on disk", func() bool { return strings.HasSuffix(target.short(), "x/55/updated") })
		if got := line.SinkOnly(pods()); len(got) != 1 || got[0].Key.Name != "only" {
			t.Errorf("the sink-only objects are %+v, want the one in the log", got)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// inherit gives the stream what the state knows of others.
func (r *rig) inherit(stream change.Stream) {
	r.t.Helper()
	store, err := checkpoint.Open(r.t.Context(), r.dir, checkpoint.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := store.Inherit(stream); err != nil {
		r.t.Error(err)
	}
	if err := store.Close(); err != nil {
		r.t.Error(err)
	}
}
