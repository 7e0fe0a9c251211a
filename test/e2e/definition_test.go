package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestI4ADefinitionThatIsDeletedAndMadeAgain: its objects are gone with it, and those of the new one arrive without a
// restart.
func TestI4ADefinitionThatIsDeletedAndMadeAgain(t *testing.T) {
	r := newRig(t, nil)
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
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
