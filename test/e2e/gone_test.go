package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestI4RestartsOfTheAPIServerAreAnnouncedGaps(t *testing.T) {
	r := newRig(t, nil)
	r.resolves()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	r.restartIdleAPIServer()
	r.writer.start(t)
	times := restarts(t, 2, 1)
	for range times {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+150)
		r.restartAPIServer()
	}
	r.settle()
	r.exporter.stop(t)
	for _, j := range r.judge(true) {
		t.Logf("sink %s said %d times up to where it is complete, and %d times which objects it has", j.sink, j.resolved, j.digests)
		for resource, c := range j.courses {
			t.Logf("sink %s: %d versions of %s lie in gaps", j.sink, c.lost, resource)
			if gone := c.count("gone"); gone == 0 {
				t.Errorf("sink %s: %s has no gap after %d restarts", j.sink, resource, times)
			}
		}
	}
	r.provesItself()
}

// restartIdleAPIServer restarts it while nothing happens: the sinks are told of the gap, and of nothing else.
func (r *rig) restartIdleAPIServer() {
	r.t.Helper()
	told := map[*follower]int{}
	for _, sink := range r.sinks() {
		told[sink] = len(sink.all(r.t))
	}
	r.restartAPIServer()
	last := r.writer.finish(r.t)
	r.await(last...)
	for _, sink := range r.sinks() {
		for i := range sink.events[told[sink]:] {
			if e := &sink.events[told[sink]+i]; e.UID != "" && !slices.Contains(last, e.UID) {
				r.t.Errorf("sink %s: nothing had happened, and it got\n%s", sink.name, e)
			}
		}
	}
}

// restartAPIServer kills it and returns when it serves again. What the watches had not sent is lost with it.
func (r *rig) restartAPIServer() {
	r.t.Helper()
	r.cluster.KillAPIServer()
	if err := r.cluster.StartAPIServer(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func TestI3ARestartOfEtcdIsNoGap(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	r.exporter.start(t)
	r.writer.start(t)
	r.file.awaitMore(t, r.exporter, 300)
	r.cluster.KillEtcd()
	if err := r.cluster.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.file.awaitMore(t, r.exporter, len(r.file.all(t))+150)
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}

func TestI4AChangedDefinitionLosesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	r.exporter.start(t)
	r.writer.start(t)
	for i := range 2 {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
		r.redefineWidgets(fmt.Sprintf("the %d. one", i))
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
	}
	r.settle()
	r.exporter.stop(t)
	for _, j := range r.judge(true) { // the new watch may find its position forgotten
		t.Logf("sink %s: %d gaps of widgets", j.sink, j.course("widgets.example.com").count("gone"))
	}
}

// redefineWidgets changes their definition, and returns when the API server has ended the watches of the old one.
func (r *rig) redefineWidgets(description string) {
	r.t.Helper()
	watch, err := connect(r.t, r.cluster.RESTConfig()).Resource(widgets()).Watch(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer watch.Stop()
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":%q}]`, description)
	if _, err := r.client.Resource(definitions()).Patch(r.t.Context(), "widgets.example.com", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		r.t.Fatal(err)
	}
	deadline := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-watch.ResultChan():
		case <-deadline:
			r.t.Fatal("the API server did not end the watch of widgets")
		}
	}
}

func TestI4DeletesDuringADowntimeArrive(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	for _, restarted := range []bool{false, true} {
		r.exporter.start(t)
		r.await(r.writer.finish(t)...)
		r.exporter.stop(t)
		deleted := r.writer.disturb(t)
		if restarted {
			r.restartAPIServer()
		}
		r.exporter.start(t)
		r.await(r.writer.finish(t)...)
		for _, sink := range r.sinks() {
			expectDeletes(t, sink.events, deleted, restarted)
		}
		r.exporter.stop(t)
	}
	r.judge(true)
}

// expectDeletes wants a delete of each object, as the watch tells it, or found by a reconcile.
func expectDeletes(t *testing.T, events []event, uids []string, reconciled bool) {
	t.Helper()
	last := map[string]*event{}
	for i := range events {
		last[events[i].UID] = &events[i]
	}
	for _, uid := range uids {
		e := last[uid]
		if e == nil || e.op() != "deleted" || e.FinalStateUnknown != reconciled || reconciled && e.Reason != "gone" {
			t.Errorf("the object was deleted, and found by a reconcile: %v; the last event is %v", reconciled, e)
		}
	}
}

func TestI3I4I5ExactlyOnceWhileEverythingIsKilled(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	r.writer.start(t)
	random := rand.New(rand.NewPCG(seed(t), 2000))
	times, killed, ended := restarts(t, 4, 1), 0, 0
	for range times {
		over := r.restartSoon(time.Duration(random.Int64N(int64(2 * time.Second))))
		for running := true; running; killed++ {
			r.exporter.start(t)
			select {
			case <-time.After(100*time.Millisecond + time.Duration(random.Int64N(int64(time.Second)))):
			case <-r.exporter.process.Exited: // it started without an API server
				r.expectFailure()
				ended++
				<-time.After(100 * time.Millisecond) // as whoever restarts it would wait
			case err := <-over:
				if running = false; err != nil {
					t.Fatal(err)
				}
			}
			r.exporter.process.Kill()
		}
	}
	r.writer.check(t)
	t.Logf("%d restarts of the API server, %d kills of the exporter, %d lives that ended by themselves", times, killed-ended, ended)
	r.exporter.start(t)
	r.settle()
	r.exporter.stop(t)
	r.judge(true)
}

// restartSoon kills the API server after the delay and starts it again, beside the test. It tells when it is done.
func (r *rig) restartSoon(delay time.Duration) <-chan error {
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		r.cluster.KillAPIServer()
		over <- r.cluster.StartAPIServer(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	return over
}

// expectFailure wants an exporter that ended by itself to say that another start may help: it was no wrong usage.
func (r *rig) expectFailure() {
	r.t.Helper()
	if code := r.exporter.process.Cmd.ProcessState.ExitCode(); code != 1 {
		r.t.Errorf("the exporter ended with code %d, want 1:\n%s", code, r.exporter.lastLines(r.t))
	}
}
