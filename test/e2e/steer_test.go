package e2e

import (
	"testing"
)

// owedSnapshot is a line of exporter snapshot --list -o json.
type owedSnapshot struct {
	ID, Sink, Stream, Reason, State string
	Objects                         int
	Percent                         *int
}

// owed are the requested snapshots that are owed, by sink.
func (r *rig) owed() map[string]owedSnapshot {
	r.t.Helper()
	bySink := map[string]owedSnapshot{}
	for _, o := range decoded[owedSnapshot](r.t, r.command("snapshot", "--list", "-o", "json")) {
		if o.Reason == "requested" {
			bySink[o.Sink] = o
		}
	}
	return bySink
}

// request asks for a snapshot of config maps for all sinks, and returns what is owed when it is read for both, and some
// of it.
func (r *rig) request() map[string]owedSnapshot {
	r.t.Helper()
	r.command("snapshot", "--resources", "configmaps")
	var owed map[string]owedSnapshot
	eventually(r.t, deliveryLimit, "the snapshot is read", func() bool {
		owed = r.owed()
		for _, sink := range []string{"bus", "archive"} {
			if o := owed[sink]; o.State != "reads" || o.Objects == 0 || o.Percent == nil || *o.Percent >= 100 {
				return false
			}
		}
		return true
	})
	return owed
}

// synced is how many config maps were given to a sink again, and how many requested snapshots of them are complete.
func synced(sink *follower, t *testing.T) (objects, complete int) {
	t.Helper()
	all := sink.all(t)
	for i := range all {
		if all[i].kind() == "configmaps" && all[i].op() == "sync" {
			objects++
		}
	}
	return objects, requested(all)["configmaps"]
}

// TestI5SnapshotsArePausedResumedAndStoppedThoughTheExporterIsKilled: what is paused waits, and goes on where it was;
// what is stopped is over, and looks complete to nobody. The snapshot for the other sink is whole.
func TestI5SnapshotsArePausedResumedAndStoppedThoughTheExporterIsKilled(t *testing.T) {
	r := newRig(t)
	r.exporter.configure(t, "- {name: bus, nats: {url: \"nats://"+r.broker.address()+"\", stream: "+streamName+"}}\n"+
		"- {name: archive, file: {path: \""+r.path()+"\"}}\nsnapshot: {objectsPerSecond: 60}\n")
	r.summon()
	r.writer.populate(t)
	r.writer.bulk(t, 480)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	restart := func() {
		t.Helper()
		r.exporter.process.Kill()
		r.exporter.start(t)
		r.await(r.writer.finish(t)...)
	}

	owed := r.request()
	r.command("snapshot", "--pause", owed["archive"].ID)
	restart()
	eventually(t, deliveryLimit, "the snapshot for the other sink is delivered", func() bool { return len(r.owed()) == 1 })
	paused, before := r.owed()["archive"], len(r.file.all(t))
	if paused.State != "paused" || paused.ID != owed["archive"].ID {
		t.Errorf("owed is %+v, want %+v, paused", paused, owed["archive"])
	}
	partly, complete := synced(r.file, t)
	whole, ofBus := synced(r.stream, t)
	if complete != 0 || partly == 0 || ofBus != 1 || whole <= partly {
		t.Errorf("paused, the file has %d objects and %d ends, the stream %d and %d", partly, complete, whole, ofBus)
	}
	r.command("snapshot", "--resume", paused.ID)
	eventually(t, deliveryLimit, "what is resumed is delivered", func() bool { return len(r.owed()) == 0 })
	all, complete := synced(r.file, t)
	if complete != 1 || all < whole/2 || all-partly >= whole {
		t.Errorf("resumed behind %d records, it has %d objects behind %d, and %d ends", before, all, partly, complete)
	}

	owed = r.request()
	r.command("snapshot", "--stop", owed["archive"].ID+","+owed["bus"].ID)
	if left := r.owed(); len(left) != 0 {
		t.Errorf("owed are %+v", left)
	}
	restart()
	if left := r.owed(); len(left) != 0 {
		t.Errorf("in the next life owed are %+v", left)
	}
	for _, sink := range r.sinks() {
		if _, complete := synced(sink, t); complete != 1 {
			t.Errorf("%d snapshots are complete, and the second was stopped", complete)
		}
	}
	r.command("snapshot", "--wait")
	r.exporter.stop(t)
	r.judge(false)
}
