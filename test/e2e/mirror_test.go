package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bucketName is the bucket that mirrors the cluster.
const bucketName = "CLUSTER"

// TestI3ABucketIsTheCluster after kills of the exporter over a broken network: what exists with its version, of what is
// gone a delete marker, and nothing else.
func TestI3ABucketIsTheCluster(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	r.exporter.configure(t, fmt.Sprintf("- {name: mirror, nats: {url: %q, kv: %s}}\n- {name: file, file: {path: %q}}\n", "nats://"+network.address(), bucketName, r.path()))
	r.writer.populate(t)
	r.exporter.start(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.idle() // before anything is deleted, so that the bucket is told of every object
	r.exporter.process.Kill()
	r.writer.start(t)
	mend := network.resetEvery(betweenCuts(t))
	r.killAtRandom(kills(t, 4))
	r.writer.stop(t)
	r.writer.disturb(t) // so that something of each kind is gone
	uids := r.writer.finish(t)
	r.file.awaitObjects(t, r.exporter, uids...)
	mend()
	eventually(t, deliveryLimit, "the bucket has the last objects", func() bool {
		objects, _ := r.mirrored()
		found := map[string]bool{}
		for _, object := range objects {
			uid, _, _ := strings.Cut(object, " ")
			found[uid] = true
		}
		return !slices.ContainsFunc(uids, func(uid string) bool { return !found[uid] })
	})
	r.idle()
	r.exporter.stop(t)
	r.compareMirror()
	t.Logf("%d connections were reset", network.resetCount())
}

// mirrored is what a client that comes now sees in the bucket: the uid and the version of each key's object, and the
// keys of delete markers.
func (r *rig) mirrored() (objects map[string]string, deleted map[string]bool) {
	r.t.Helper()
	bucket, err := r.broker.open().js.KeyValue(r.t.Context(), bucketName)
	if err != nil {
		r.t.Fatal(err)
	}
	watcher, err := bucket.WatchAll(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer watcher.Stop()
	objects, deleted = map[string]string{}, map[string]bool{}
	for entry := range watcher.Updates() {
		switch {
		case entry == nil: // nothing else is there now
			return objects, deleted
		case strings.HasSuffix(entry.Key(), ".-"): // a frame of a snapshot, or a gap
		case entry.Operation() != jetstream.KeyValuePut:
			deleted[entry.Key()] = true
		default:
			e, err := parseEvent(entry.Value())
			if err != nil {
				r.t.Fatalf("key %s: %v", entry.Key(), err)
			}
			objects[entry.Key()] = e.UID + " " + e.ResourceVersion
		}
	}
	return objects, deleted
}

// compareMirror compares what the client knows with the API server's lists, and with what the writer deleted.
func (r *rig) compareMirror() {
	r.t.Helper()
	objects, deleted := r.mirrored()
	listed := map[string]bool{}
	for _, resource := range r.resources() {
		r.eachListed(resource, func(object *unstructured.Unstructured) {
			key := mirrorKey(resource, object.GetNamespace(), object.GetName())
			if want := string(object.GetUID()) + " " + object.GetResourceVersion(); objects[key] != want {
				r.t.Errorf("key %s has %q, want %q", key, objects[key], want)
			}
			delete(objects, key)
			listed[key] = true
		})
	}
	for key, found := range objects {
		r.t.Errorf("key %s has %q, which does not exist", key, found)
	}
	gone := 0
	for _, h := range r.ledger.histories {
		name, group, _ := strings.Cut(h.resource, ".")
		namespace, object, namespaced := strings.Cut(h.key, "/")
		if !namespaced {
			namespace, object = "", h.key
		}
		if key := mirrorKey(schema.GroupVersionResource{Group: group, Resource: name}, namespace, object); h.gone && !listed[key] {
			gone++
			if !deleted[key] {
				r.t.Errorf("key %s has no delete marker: %s", key, h)
			}
		}
	}
	if gone == 0 || len(listed) == 0 {
		r.t.Errorf("%d objects and %d that are gone prove nothing", len(listed), gone)
	}
}

// mirrorKey is the key that the object must have.
func mirrorKey(resource schema.GroupVersionResource, namespace, name string) string {
	e := event{Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: name}
	return strings.TrimPrefix(route("x", &e), "k8s.x.")
}
