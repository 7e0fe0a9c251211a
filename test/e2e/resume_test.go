package e2e

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestI2I7StopsAreCleanAndRestartsResume without a list: under load, without the broker, of which it is said what is
// left, and without the API server.
func TestI2I7StopsAreCleanAndRestartsResume(t *testing.T) {
	r := newRig(t)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	begun := len(r.exporter.log(t))
	r.writer.start(t)
	random := rand.New(rand.NewPCG(seed(t), 5000))
	for range kills(t, 5) {
		before := len(r.file.all(t))
		r.exporter.start(t)
		r.file.awaitMore(t, r.exporter, before+1+random.IntN(100))
		r.exporter.stop(t)
	}
	r.exporter.start(t)
	r.settle()
	r.stopWithoutBroker()
	r.exporter.stop(t)
	if log := r.exporter.log(t)[begun:]; compares(log) {
		t.Errorf("a restart was no resume:\n%s", log)
	}
	for _, j := range r.judge(false) {
		for resource, c := range j.courses {
			if len(c.spans) != 1 || c.broken > 0 {
				t.Errorf("sink %s: %s has %d snapshots and %d broken ones, want the first only", j.sink, resource, len(c.spans), c.broken)
			}
		}
	}

	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.cluster.KillAPIServer()
	r.exporter.stop(t)
	if err := r.cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(true)
}

// stopWithoutBroker leaves records to another start, which has delivered them when it returns.
func (r *rig) stopWithoutBroker() {
	r.t.Helper()
	r.broker.kill()
	r.writer.change(r.t, 5)
	r.file.awaitObjects(r.t, r.exporter, r.writer.finish(r.t)...)
	code, took, err := r.exporter.process.terminate(stopLimit)
	if err != nil {
		r.t.Fatal(err)
	}
	said := "left undelivered: sink nats: "
	if log := r.exporter.lastLines(r.t); code != 1 || !strings.Contains(log, said) || strings.Contains(log, "sink file:") {
		r.t.Errorf("the exporter ended with code %d, want 1 and %q in its log:\n%s", code, said, log)
	}
	r.t.Logf("the stop took %s", took)
	r.broker.start()
	r.exporter.start(r.t)
	r.await(r.writer.finish(r.t)...)
}

// compares says whether a reconcile is in the log, whichever way it is told.
func compares(log string) bool {
	return slices.ContainsFunc([]string{"snapshot begins", "msg=\"snapshot complete\"", `msg="gap: `}, func(text string) bool { return strings.Contains(log, text) })
}
