package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestI4AResyncFindsWhatTheWatchLost: the API server's watch loses an update, a creation and a delete. The sink that
// has a resync finds them, and all sinks are told.
func TestI4AResyncFindsWhatTheWatchLost(t *testing.T) {
	r := newRigOf(t, world{gateway: true, resync: time.Minute})
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	lost := r.loseFrames()
	r.await(r.writer.finish(t)...) // after which the position is
	for sink, reason := range map[*follower]string{r.file: "resync", r.stream: "drift"} {
		for op, uid := range lost {
			sink.await(t, r.exporter, "the correction of "+op, func(e *event) bool {
				return e.UID == uid && e.Reason == reason && e.op() != "sync" && e.FinalStateUnknown == (op == "DELETED shop/map-2")
			})
		}
	}
	r.expectCorrections("shop/map-0", "shop/map-1", "shop/map-2")
	r.file.await(t, r.exporter, "the end of the resync", func(e *event) bool {
		return e.op() == "snapshot.end" && e.Reason == "resync" && e.kind() == "configmaps"
	})
	r.exporter.stop(t)
	r.judge(false)
	r.expectFramesOfResyncs()
}

// loseFrames changes three configmaps, and the exporter's watch is told nothing of it. It returns the uids, by what was
// lost.
func (r *rig) loseFrames() map[string]string {
	r.t.Helper()
	maps := r.writer.workers[1]
	changed, made, gone := maps.slots[0], maps.slots[1], maps.slots[2]
	lost := map[string]string{"MODIFIED shop/map-0": string(changed.object.GetUID()), "DELETED shop/map-2": string(gone.object.GetUID())}
	before := string(made.object.GetUID())
	step := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	step(maps.delete(r.t.Context(), made))
	for _, sink := range r.sinks() {
		sink.await(r.t, r.exporter, "the delete of shop/map-1", func(e *event) bool { return e.UID == before && e.op() == "deleted" })
	}
	r.gateway.lose("configmaps", "MODIFIED shop/map-0", "ADDED shop/map-1", "DELETED shop/map-2")
	step(maps.update(r.t.Context(), changed))
	step(maps.create(r.t.Context(), made))
	step(maps.delete(r.t.Context(), gone))
	lost["ADDED shop/map-1"] = string(made.object.GetUID())
	eventually(r.t, deliveryLimit, "the watch has lost the frames", func() bool { return len(r.gateway.left()) == 0 })
	return lost
}

// expectCorrections wants them counted, and each object in a line of the log.
func (r *rig) expectCorrections(keys ...string) {
	r.t.Helper()
	for op, want := range map[string]float64{"replaced": 2, "deleted": 1} {
		if n := r.exporter.metric(r.t, `kubecdc_corrections_total{op="`+op+`",resource="configmaps"}`); n != want {
			r.t.Errorf("%v corrections of configmaps are counted as %s, want %v", n, op, want)
		}
	}
	log := strings.Split(r.exporter.log(r.t), "\n")
	for _, key := range keys {
		if !slices.ContainsFunc(log, func(line string) bool { return strings.Contains(line, "drift: ") && strings.Contains(line, key) }) {
			r.t.Errorf("no line of the log tells of the drift of %s", key)
		}
	}
}

// expectFramesOfResyncs wants unchanged objects and frames of resyncs in the sink that asked for it, and only there.
func (r *rig) expectFramesOfResyncs() {
	r.t.Helper()
	for _, e := range r.stream.all(r.t) {
		if e.Reason == "resync" || e.Reason == "drift" && e.op() == "sync" {
			r.t.Errorf("the sink without a resync got\n%s", &e)
		}
	}
	synced := slices.ContainsFunc(r.file.all(r.t), func(e event) bool { return e.op() == "sync" && e.Reason == "resync" })
	if !synced {
		r.t.Error("the sink with a resync got no unchanged object")
	}
}
