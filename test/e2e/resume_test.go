package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestI2ARestartResumesWithoutAList(t *testing.T) {
	r := newRig(t, nil)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	for range 3 {
		r.exporter.stop(t)
		before := len(r.exporter.log(t))
		r.writer.change(t, amount(20, 5))
		r.exporter.start(t)
		r.await(r.writer.finish(t)...)
		if log := r.exporter.log(t)[before:]; compares(log) {
			t.Errorf("the restart was no resume:\n%s", log)
		}
	}
	r.exporter.stop(t)
	for _, j := range r.judge(false) {
		for resource, c := range j.courses {
			if len(c.spans) != 1 || c.broken > 0 {
				t.Errorf("sink %s: %s has %d snapshots and %d broken ones, want the first only", j.sink, resource, len(c.spans), c.broken)
			}
		}
	}
}

// compares says whether a reconcile is in the log, whichever way it is told.
func compares(log string) bool {
	return slices.ContainsFunc([]string{"snapshot begins", "msg=\"snapshot complete\"", `msg="gap: `}, func(text string) bool { return strings.Contains(log, text) })
}

func TestI7StopsUnderLoadAreClean(t *testing.T) {
	r := newRig(t, nil)
	r.summon()
	r.writer.populate(t)
	r.writer.start(t)
	random := rand.New(rand.NewPCG(seed(t), 5000))
	times := kills(t, 12, 4)
	for range times {
		before := len(r.file.all(t))
		r.exporter.start(t)
		r.file.awaitMore(t, r.exporter, before+1+random.IntN(100))
		r.exporter.stop(t)
	}
	r.exporter.start(t)
	r.settle()
	r.exporter.stop(t)
	for _, j := range r.judge(false) {
		for resource, c := range j.courses {
			if len(c.spans) > 1 {
				t.Errorf("sink %s: %s has %d snapshots after %d clean stops", j.sink, resource, len(c.spans), times)
			}
		}
	}
}

func TestI7AStopWithoutTheAPIServerIsClean(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
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

func TestI7AStopWithoutTheBrokerSaysWhatIsLeft(t *testing.T) {
	r := newRig(t, nil)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.broker.kill()
	r.writer.change(t, 5)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	code, took, err := r.exporter.process.terminate(stopLimit)
	if err != nil {
		t.Fatal(err)
	}
	said := "left undelivered: sink nats: "
	if log := r.exporter.lastLines(t); code != 1 || !strings.Contains(log, said) || strings.Contains(log, "sink file:") {
		t.Errorf("the exporter ended with code %d, want 1 and %q in its log:\n%s", code, said, log)
	}
	t.Logf("the stop took %s", took)
	r.broker.start()
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(false)
}

func TestI10ASecondExporterIsKeptApart(t *testing.T) {
	r := newRig(t, nil)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	second := *r.exporter
	second.process = nil
	second.logPath += ".second"
	second.args = append(slices.Clone(second.args), "--listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	second.start(t)
	select {
	case <-second.process.Exited:
	case <-time.After(deliveryLimit):
		t.Fatalf("the second exporter runs beside the first:\n%s", second.lastLines(t))
	}
	if code := second.process.Cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the second exporter ended with code %d, want 1:\n%s", code, second.lastLines(t))
	}
	r.writer.change(t, 5)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(false)
}
