package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestI4RestartsOfTheAPIServerAreAnnouncedGaps, also where the exporter is killed meanwhile.
func TestI4RestartsOfTheAPIServerAreAnnouncedGaps(t *testing.T) {
	r := newRig(t)
	r.resolves()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	r.restartIdleAPIServer()
	r.writer.start(t)
	times := restarts(t, 2)
	for i := range times {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+150)
		r.restartAPIServer()
		if i%2 == 1 {
			r.exporter.process.Kill()
			r.restartAPIServer()
			r.exporter.start(t)
		}
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
	r := newRig(t)
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

// TestI4ADefinitionThatIsChangedThenDeletedAndMadeAgain loses nothing while it is changed. Its objects are gone with
// it, and those of the new one arrive without a restart.
func TestI4ADefinitionThatIsChangedThenDeletedAndMadeAgain(t *testing.T) {
	r := newRig(t)
	r.writer.populate(t)
	r.exporter.start(t)
	r.writer.start(t)
	for i := range 2 {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
		r.redefineWidgets(fmt.Sprintf("the %d. one", i))
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+100)
	}
	r.settle()
	for _, uid := range r.deleteDefinition() {
		for _, sink := range r.sinks() {
			sink.await(t, r.exporter, "the delete of "+uid, func(e *event) bool { return e.UID == uid && e.op() == "deleted" })
		}
	}
	r.defineWidgets()
	r.writer.forget("widgets.example.com")
	r.writer.change(t, 10)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(true)
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

// deleteDefinition deletes the definition of widgets and returns the uids of all widgets, which are gone with it.
func (r *rig) deleteDefinition() (uids []string) {
	r.t.Helper()
	r.eachListed(widgets(), func(widget *unstructured.Unstructured) {
		uids = append(uids, string(widget.GetUID()))
		if len(widget.GetFinalizers()) == 0 {
			return
		}
		widget.SetFinalizers(nil) // nobody is there who would
		made, err := r.client.Resource(widgets()).Namespace(widget.GetNamespace()).Update(r.t.Context(), widget, metav1.UpdateOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		r.ledger.updated(made)
	})
	if err := r.client.Resource(definitions()).Delete(r.t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, deliveryLimit, "the definition of widgets is gone", func() bool {
		_, err := r.client.Resource(definitions()).Get(r.t.Context(), "widgets.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	for _, uid := range uids {
		r.ledger.deleted(uid, 0)
	}
	return uids
}
