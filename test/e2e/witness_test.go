package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// witness watches the resources as they are written, with a plain watch each. It knows what the API server tells the
// writer nothing of: the version of a delete. It must have an API server that is not restarted.
type witness struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex // guards the following
	seen map[string]*history
	err  error
}

// newWitness watches each resource from the version on.
func newWitness(t *testing.T, client dynamic.Interface, from map[schema.GroupVersionResource]string) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &witness{cancel: cancel, seen: map[string]*history{}}
	t.Cleanup(w.stop)
	for resource, version := range from {
		watch, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		w.done.Go(func() { w.follow(ctx, client.Resource(resource), watch, version) })
	}
	return w
}

func (w *witness) stop() {
	w.cancel()
	w.done.Wait()
}

// await returns when the object of the uid was seen in a version, or the witness has failed.
func (w *witness) await(t *testing.T, uid string) {
	t.Helper()
	eventually(t, deliveryLimit, "the witness has seen the end", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil {
			t.Fatal(w.err)
		}
		return w.seen[uid] != nil
	})
}

// awaitDeletes returns when the deletes of all uids were seen.
func (w *witness) awaitDeletes(t *testing.T, uids []string) {
	t.Helper()
	eventually(t, deliveryLimit, "the witness has seen the deletes", func() bool {
		deleted := w.deletions()
		for _, uid := range uids {
			if deleted[uid] == 0 {
				return false
			}
		}
		return true
	})
}

// deletions are the versions of the deletes seen, by uid.
func (w *witness) deletions() map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	deleted := map[string]uint64{}
	for uid, h := range w.seen {
		if h.gone {
			deleted[uid] = h.deletion
		}
	}
	return deleted
}

// follow goes on where a watch has ended, as API servers let each end after half an hour or more.
func (w *witness) follow(ctx context.Context, client dynamic.ResourceInterface, from watch.Interface, version string) {
	for {
		err := w.listen(from, &version)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			from, err = client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		}
		if err != nil {
			w.fail(fmt.Errorf("watch from version %s on: %w", version, err))
			return
		}
	}
}

// listen notes what a watch tells until it ends, and moves the version on.
func (w *witness) listen(from watch.Interface, version *string) error {
	defer from.Stop()
	for frame := range from.ResultChan() {
		object, ok := frame.Object.(*unstructured.Unstructured)
		if !ok || frame.Type == watch.Error {
			return apierrors.FromObject(frame.Object)
		}
		w.note(frame.Type, object)
		*version = object.GetResourceVersion()
	}
	return nil
}

func (w *witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *witness) note(kind watch.EventType, object *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := string(object.GetUID())
	h := w.seen[uid]
	if h == nil {
		h = &history{uid: uid, key: joined(object.GetNamespace(), object.GetName())}
		w.seen[uid] = h
	}
	if kind == watch.Deleted {
		h.gone, h.deletion = true, parseVersion(object.GetResourceVersion())
		return
	}
	h.versions = append(h.versions, versionOf(object))
}
