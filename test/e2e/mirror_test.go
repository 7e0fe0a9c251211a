package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bucketName is the bucket that mirrors the cluster.
const bucketName = "CLUSTER"

// TestI3ABucketIsTheCluster after kills of the exporter over a broken network, as a client sees it that has watched
// all the time: what exists with its version, of what is gone a delete marker, and nothing else.
func TestI3ABucketIsTheCluster(t *testing.T) {
	r, network := newProxiedRig(t, world{})
	r.mirror(network.address())
	r.writer.populate(t)
	r.exporter.start(t)
	r.file.awaitObjects(t, r.exporter, r.writer.finish(t)...)
	r.exporter.process.Kill() // before anything is deleted, so that the bucket is told of every object
	m := watchMirror(t, r.broker.open())
	r.writer.start(t)
	mend := network.resetEvery(betweenCuts(t))
	r.killAtRandom(kills(t, 8, 3))
	r.writer.stop(t)
	r.writer.disturb(t) // so that something of each kind is gone
	uids := r.writer.finish(t)
	r.file.awaitObjects(t, r.exporter, uids...)
	mend()
	m.awaitObjects(t, uids)
	r.exporter.stop(t)
	r.compareMirror(m)
	if fresh := watchMirror(t, r.broker.open()); !maps.Equal(fresh.read(), m.read()) {
		t.Errorf("a client that comes now sees something else")
	}
	t.Logf("%d connections were reset; the bucket has %d objects and %d delete markers", network.resetCount(), len(m.objects), len(m.deleted))
}

// mirror makes the exporter write to the bucket instead of the stream.
func (r *rig) mirror(address string) {
	r.t.Helper()
	r.exporter.configure(r.t, fmt.Sprintf("- {name: mirror, nats: {url: %q, kv: %s}}\n- {name: file, file: {path: %q}}\n", "nats://"+address, bucketName, r.path()))
}

// mirrored is what a client knows that watches the bucket.
type mirrored struct {
	bucket jetstream.KeyValue

	mu      sync.Mutex // guards the following
	objects map[string]string
	deleted map[string]bool
	newest  uint64 // the revision
	err     error
}

// watchMirror watches the bucket until the test's end.
func watchMirror(t *testing.T, log *streamLog) *mirrored {
	t.Helper()
	bucket, err := log.js.KeyValue(t.Context(), bucketName)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := bucket.WatchAll(context.WithoutCancel(t.Context())) // Stop ends it
	if err != nil {
		t.Fatal(err)
	}
	m := &mirrored{bucket: bucket, objects: map[string]string{}, deleted: map[string]bool{}}
	var done sync.WaitGroup
	done.Go(func() {
		for entry := range watcher.Updates() {
			if entry != nil { // nil stands after what was there at the begin
				m.note(entry)
			}
		}
	})
	t.Cleanup(func() {
		if err := watcher.Stop(); err != nil {
			t.Error(err)
		}
		done.Wait()
	})
	m.await(t)
	return m
}

// await returns when the watch has come to the bucket's present end.
func (m *mirrored) await(t *testing.T) {
	t.Helper()
	eventually(t, deliveryLimit, "the watch of the bucket is at its end", func() bool {
		status, err := m.bucket.Status(t.Context())
		if err != nil {
			return false // the server may be down
		}
		last := status.(*jetstream.KeyValueBucketStatus).StreamInfo().State.LastSeq
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.newest >= last
	})
}

// awaitObjects returns when the bucket has all of the uids: the file sink does not wait for it.
func (m *mirrored) awaitObjects(t *testing.T, uids []string) {
	t.Helper()
	eventually(t, deliveryLimit, "the bucket has the last objects", func() bool {
		found := map[string]bool{}
		for _, object := range m.read() {
			uid, _, _ := strings.Cut(object, " ")
			found[uid] = true
		}
		return !slices.ContainsFunc(uids, func(uid string) bool { return !found[uid] })
	})
}

func (m *mirrored) note(entry jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = entry.Revision()
	key := entry.Key()
	if strings.HasSuffix(key, ".-") {
		return // a frame of a snapshot, or a gap
	}
	if entry.Operation() != jetstream.KeyValuePut {
		delete(m.objects, key)
		m.deleted[key] = true
		return
	}
	e, err := parseEvent(entry.Value())
	if err != nil {
		m.err = fmt.Errorf("key %s: %w", key, err)
		return
	}
	delete(m.deleted, key)
	m.objects[key] = e.UID + " " + e.ResourceVersion
}

// read is the uid and the version of each key's object.
func (m *mirrored) read() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects)
}

// compareMirror compares what the client knows with the API server's lists, and with what the writer deleted.
func (r *rig) compareMirror(m *mirrored) {
	r.t.Helper()
	m.await(r.t)
	if m.err != nil {
		r.t.Fatal(m.err)
	}
	objects, listed := m.read(), map[string]bool{}
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
			if !m.deleted[key] {
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
