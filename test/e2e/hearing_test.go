package e2e

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// judge reads all sinks from their begin and judges them. gaps says whether the API server was restarted. What is
// written after it has no witness.
func (r *rig) judge(gaps bool) []*judge {
	r.t.Helper()
	if r.witness != nil {
		r.witness.stop()
		if err := r.ledger.complete(r.witness); err != nil {
			r.t.Fatal(err)
		}
		r.witness = nil
	}
	var judges []*judge
	for _, sink := range r.sinks() {
		judges = append(judges, r.hear(sink.name, sink.again().all(r.t), gaps))
	}
	for _, other := range judges[1:] {
		for _, text := range disagreement(judges[0], other) {
			r.t.Errorf("the sinks disagree: %s", text)
		}
	}
	versions, deletes := r.ledger.count()
	r.t.Logf("API server: %d objects, %d versions, %d deletes; %s", len(r.ledger.histories), versions, deletes, time.Since(r.began).Round(time.Millisecond))
	return judges
}

// hear judges what one sink holds, each history by itself, and what a consumer believes at the end. It returns the
// judge of the present history.
func (r *rig) hear(sink string, events []event, gaps bool) *judge {
	r.t.Helper()
	r.t.Logf("%s: %s", sink, figures(events))
	var present *judge
	left := map[string]told{}
	ledgers := append(r.earlier[:len(r.earlier):len(r.earlier)], r.ledger)
	parts := histories(events, len(ledgers))
	for i, part := range parts {
		present = newJudge(sink, ledgers[i].histories, gaps)
		present.cluster, present.inherited, present.drift = ledgers[i].cluster, left, r.world.resync > 0
		present.begunAnew = r.world.begunAnew
		present.hear(part)
		if left = present.state(); i == len(parts)-1 {
			r.compareState(present)
		}
		present.verdict(r.t)
	}
	return present
}

// histories cuts a sink's events where a resource begins a new history, n of them: a gap of reason epoch that is not
// only the next attempt to mend the last one.
func histories(events []event, n int) [][]event {
	parts := make([][]event, n)
	at, mending := map[string]int{}, map[string]bool{}
	for _, e := range events {
		switch kind := e.kind(); {
		case e.op() == "gap" && e.Reason == "epoch":
			if !mending[kind] {
				at[kind]++
			}
			mending[kind] = true
		case e.op() == "snapshot.end":
			mending[kind] = false
		}
		i := min(at[e.kind()], n-1) // the judge does not expect one more there
		parts[i] = append(parts[i], e)
	}
	return parts
}

// compareState compares what a consumer believes to exist with the API server's list: uid, version and body.
func (r *rig) compareState(j *judge) {
	r.t.Helper()
	state := j.state()
	for _, resource := range r.resources() {
		r.eachListed(resource, func(object *unstructured.Unstructured) {
			name := fmt.Sprintf("%s %s uid=%s", resource.Resource, joined(object.GetNamespace(), object.GetName()), object.GetUID())
			have, found := state[string(object.GetUID())]
			switch {
			case !found && j.had[parseVersion(object.GetResourceVersion())]: // it was told before the log was made again
			case !found:
				j.fault("%s exists, and not in the sink", name)
			case have.version() != parseVersion(object.GetResourceVersion()):
				j.fault("%s is at version %s, the sink at %s", name, object.GetResourceVersion(), have.ResourceVersion)
			case !sameBody(have.Data, object):
				j.fault("%s at version %s has another body in the sink: %s", name, object.GetResourceVersion(), have.Data)
			}
			delete(state, string(object.GetUID()))
		})
	}
	for uid, have := range state {
		j.fault("the sink has an object that does not exist: uid=%s version %d", uid, have.version())
	}
}

// sameBody compares an event's data with the object, but for what the exporter cuts.
func sameBody(data []byte, object *unstructured.Unstructured) bool {
	var have unstructured.Unstructured
	if err := have.UnmarshalJSON(data); err != nil {
		return false
	}
	want := object.DeepCopy()
	want.SetManagedFields(nil)
	return reflect.DeepEqual(have.Object, want.Object)
}

func figures(events []event) string {
	count := map[string]int{}
	for i := range events {
		op := events[i].op()
		if events[i].FinalStateUnknown {
			op += "(finalstateunknown)"
		}
		count[op]++
	}
	return fmt.Sprintf("%d events %v", len(events), count)
}
