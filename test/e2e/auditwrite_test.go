package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// write is one of a user's.
type auditWrite struct {
	w       *auditWorld
	ctx     context.Context
	user    *auditUser
	rnd     *rand.Rand
	to      dynamic.ResourceInterface
	name    string
	present *unstructured.Unstructured // as the user sees it; nil is none
}

// run makes so many writes at once from several sides.
func (w *auditWorld) run(writes int) {
	const sides = 8
	w.round++
	var done sync.WaitGroup
	for side := range sides {
		done.Go(func() {
			rnd := rand.New(rand.NewPCG(seed(w.t), w.round<<8|uint64(side)))
			for range writes / sides {
				w.one(rnd)
			}
		})
	}
	done.Wait()
}

func (w *auditWorld) one(rnd *rand.Rand) {
	a := &auditWrite{w: w, ctx: w.t.Context(), user: w.users[rnd.IntN(len(w.users))], rnd: rnd}
	resource, kind := core("configmaps"), "ConfigMap"
	a.name = fmt.Sprintf("object-%d", rnd.IntN(12))
	switch rnd.IntN(6) {
	case 0:
		resource, kind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment"
	case 1:
		resource, kind = core("serviceaccounts"), "ServiceAccount" // a delete is answered with the last state
	}
	a.to = a.user.client.Resource(resource).Namespace(auditNamespace)
	a.present, _ = a.to.Get(a.ctx, a.name, metav1.GetOptions{})
	if a.present == nil || a.present.GetName() == "" {
		a.create(kind)
		return
	}
	all := []func(){
		a.put, a.put, a.putAnyway, a.patch, a.patch, a.patch, a.patchAt, a.testAt, a.nothing, a.hostile, a.delete, a.hold, a.apply, a.applyAt,
	}
	if kind == "Deployment" {
		all = append(all, a.scale, a.scale)
	}
	all[rnd.IntN(len(all))]()
}

// answered notes what the user was answered with.
func (a *auditWrite) answered(how string, object *unstructured.Unstructured, err error) {
	if err != nil || object == nil {
		return // a conflict, or it is gone
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.claims[claim(a.user.name, string(object.GetUID()), object.GetResourceVersion())] = how
}

func (a *auditWrite) mark() map[string]any {
	return map[string]any{"by": a.user.name, "n": fmt.Sprint(a.rnd.Uint64())}
}

func (a *auditWrite) create(kind string) {
	o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": a.name, "annotations": a.mark()}}
	if kind == "Deployment" {
		o = deployment(a.name, a.mark())
	}
	made, err := a.to.Create(a.ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	a.answered("create", made, err)
}

// deployment is a small one.
func deployment(name string, annotations map[string]any) map[string]any {
	labels := map[string]any{"app": "x"}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "annotations": annotations},
		"spec": map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
			},
		},
	}
}

func (a *auditWrite) marked() *unstructured.Unstructured {
	o := a.present.DeepCopy()
	if err := unstructured.SetNestedMap(o.Object, a.mark(), "metadata", "annotations"); err != nil {
		a.w.t.Error(err)
	}
	return o
}

// put writes at a version.
func (a *auditWrite) put() {
	made, err := a.to.Update(a.ctx, a.marked(), metav1.UpdateOptions{})
	a.answered("put", made, err)
}

// putAnyway writes at no version.
func (a *auditWrite) putAnyway() {
	o := a.marked()
	o.SetResourceVersion("")
	made, err := a.to.Update(a.ctx, o, metav1.UpdateOptions{})
	a.answered("putAnyway", made, err)
}

func (a *auditWrite) merge(how string, patch map[string]any) {
	text, err := json.Marshal(patch)
	if err != nil {
		a.w.t.Error(err)
		return
	}
	made, err := a.to.Patch(a.ctx, a.name, types.MergePatchType, text, metav1.PatchOptions{})
	a.answered(how, made, err)
}

func (a *auditWrite) patch() {
	a.merge("patch", map[string]any{"metadata": map[string]any{"annotations": a.mark()}})
}

func (a *auditWrite) patchAt() {
	a.merge("patchAt", map[string]any{"metadata": map[string]any{"annotations": a.mark(), "resourceVersion": a.present.GetResourceVersion()}})
}

// testAt is a JSON Patch that tests the version.
func (a *auditWrite) testAt() {
	text, err := json.Marshal([]any{
		map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": a.present.GetResourceVersion()},
		map[string]any{"op": "add", "path": "/metadata/annotations", "value": a.mark()},
	})
	if err != nil {
		a.w.t.Error(err)
		return
	}
	made, err := a.to.Patch(a.ctx, a.name, types.JSONPatchType, text, metav1.PatchOptions{})
	a.answered("testAt", made, err)
}

// nothing changes nothing, and is answered with what somebody else has made.
func (a *auditWrite) nothing() { a.merge("nothing", map[string]any{}) }

// hostile changes nothing either, and looks as if it was written at an earlier version.
func (a *auditWrite) hostile() {
	now := a.present.GetResourceVersion()
	type one struct {
		kind types.PatchType
		text string
	}
	all := []one{
		{types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"metadata":{}}`},
		{types.MergePatchType, `{"metadata":{"resourceVersion":"1","resourceVersion":"` + now + `"}}`},
		{types.MergePatchType, `{"Metadata":{"resourceVersion":"1"}}`},
		{types.MergePatchType, `{"metadata":{"ResourceVersion":"1"}}`},
		{types.StrategicMergePatchType, `{"metadata":{"$patch":"merge","resourceVersion":"1"}}`},
		{types.StrategicMergePatchType, `{"metadata":{"$retainKeys":["name"],"resourceVersion":"1"}}`},
		{types.JSONPatchType, `[{"op":"replace","path":"x/metadata/resourceVersion","value":"1"},` +
			`{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"replace","path":"x/metadata/resourceVersion","value":"` + now + `"}]`},
		{types.JSONPatchType, `[{"op":"add","path":"/metadata/resourceVersion","value":"1"},` +
			`{"op":"replace","path":"/metadata/resourceVersion","value":"` + now + `"}]`},
		{types.JSONPatchType, `[{"op":"copy","from":"/metadata/resourceVersion","path":"/metadata/annotations/was"},` +
			`{"op":"remove","path":"/metadata/annotations/was"}]`},
	}
	chosen := all[a.rnd.IntN(len(all))]
	made, err := a.to.Patch(a.ctx, a.name, chosen.kind, []byte(chosen.text), metav1.PatchOptions{})
	a.answered("hostile", made, err)
}

// hold makes the next delete leave a state, and then takes the finalizer off.
func (a *auditWrite) hold() {
	metadata := map[string]any{"annotations": a.mark(), "finalizers": []any{"example.org/hold"}}
	if len(a.present.GetFinalizers()) > 0 {
		metadata["finalizers"] = nil
	}
	a.merge("hold", map[string]any{"metadata": metadata})
}

// apply changes what its manager has applied before, at no version.
func (a *auditWrite) apply() { a.applied("apply", nil) }

// applyAt is an apply at a version, perhaps an old one.
func (a *auditWrite) applyAt() {
	version := a.present.GetResourceVersion()
	a.applied("applyAt", &version)
}

func (a *auditWrite) applied(how string, version *string) {
	metadata := map[string]any{"name": a.name, "annotations": a.mark()}
	if version != nil {
		metadata["resourceVersion"] = *version
	}
	text, err := json.Marshal(map[string]any{"apiVersion": a.present.GetAPIVersion(), "kind": a.present.GetKind(), "metadata": metadata})
	if err != nil {
		a.w.t.Error(err)
		return
	}
	force := true
	made, err := a.to.Patch(a.ctx, a.name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "applier", Force: &force})
	a.answered(how, made, err)
}

// scale writes a subresource, whose state does not say who did.
func (a *auditWrite) scale() {
	text := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, a.present.GetResourceVersion(), a.rnd.IntN(50))
	made, err := a.to.Patch(a.ctx, a.name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, "scale")
	if err != nil || made.GetResourceVersion() == a.present.GetResourceVersion() {
		return // it was as large before
	}
	a.answered("scale", made, err)
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.truth[string(made.GetUID())+" "+made.GetResourceVersion()] = a.user.name
}

// delete is confirmed, or answered with a state.
func (a *auditWrite) delete() {
	uid := string(a.present.GetUID())
	err := a.to.Delete(a.ctx, a.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: (*types.UID)(&uid)}})
	if err != nil {
		return
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.gone[uid] = append(a.w.gone[uid], a.user.name)
}
