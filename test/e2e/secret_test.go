package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretSinks are all formats, to files, to streams and to a bucket. What a stream cannot take at once waits on disk.
const secretSinks = `
sinks:
  - {name: events, file: {path: %[1]s/events.ndjson}}
  - {name: envelopes, file: {path: %[1]s/envelopes.ndjson}, format: debezium}
  - {name: s1, nats: {url: "nats://%[2]s", stream: S1, subject: "s1.{resource}.{name}"}, queue: {records: 4, full: spool}}
  - {name: s2, nats: {url: "nats://%[2]s", stream: S2, subject: "s2.{resource}.{name}"}, format: cloudevents-binary, queue: {records: 4, full: spool}}
  - {name: s3, nats: {url: "nats://%[2]s", stream: S3, subject: "s3.{resource}.{name}"}, format: debezium, queue: {records: 4, full: spool}}
  - {name: s4, nats: {url: "nats://%[2]s", stream: S4, subject: "s4.{resource}.{name}"}, format: object, queue: {records: 4, full: spool}}
  - {name: kv, nats: {url: "nats://%[2]s", kv: KV}, format: object, queue: {records: 4, full: spool}}
`

// secretStreams are the names of the sinks in secretSinks that are streams, and of the streams; secretLogs of all sinks.
func secretStreams() map[string]string {
	return map[string]string{"s1": "S1", "s2": "S2", "s3": "S3", "s4": "S4", "kv": "KV_KV"}
}

func secretLogs() []string { return []string{"events", "envelopes", "s1", "s2", "s3", "s4", "kv"} }

// TestI9NoValueOfASecretLeaves plants values, lets everything happen to them, and looks for them wherever the exporter
// writes and whatever it shows: in the sinks, the state with its spool and the objects that it keeps, dead letters, the log,
// the status pages, and what each command says.
func TestI9NoValueOfASecretLeaves(t *testing.T) {
	r := newRig(t, nil)
	config := fmt.Sprintf(`
resources:
  - {resource: secrets, keep: [managedFields, lastApplied], before: true, filter: '!has(object.metadata.labels) || int(object.data.a) > 0', filterFailure: deadletter}
  - {resource: configmaps, redact: [.data.token], before: true}
listen: %q
state: {dir: %s}
log: {level: debug}
`, r.exporter.listen, filepath.Join(r.dir, "state")) + fmt.Sprintf(secretSinks, r.dir, r.broker.address())
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.exporter.args, r.exporter.sinks = []string{"run", "--kubeconfig", r.cluster.Kubeconfig(), "-f", path}, nil
	r.exporter.start(t)
	events := followFile(filepath.Join(r.dir, "events.ndjson"))

	planted := plant{t: t, r: r}
	planted.secret("kept")
	planted.secret("gone")
	planted.config("settings")
	events.await(t, r.exporter, "the Secret", func(e *event) bool { return e.Name == "gone" })
	planted.update(secrets(), "gone")
	planted.update(core("configmaps"), "settings")
	planted.remove("gone")
	events.await(t, r.exporter, "the delete", func(e *event) bool { return e.op() == "deleted" && e.Name == "gone" })
	planted.letters(events)
	planted.spool(events)
	r.exporter.process.kill()
	if found := planted.searchState(); found.chunks == 0 || found.images == 0 {
		t.Errorf("the state has %d chunks of the spool and %d objects with hashes: nothing was looked at", found.chunks, found.images)
	}
	r.broker.start()
	planted.update(secrets(), "kept")
	planted.update(core("configmaps"), "settings")
	planted.secret("missed")
	r.exporter.start(t)
	events.await(t, r.exporter, "the missed Secret", func(e *event) bool { return e.Name == "missed" })
	r.exporter.stop(t)
	planted.remove("missed")
	planted.forget()
	r.exporter.start(t)
	events.await(t, r.exporter, "the missed delete", func(e *event) bool { return e.Name == "missed" && e.FinalStateUnknown })
	planted.secret("last")
	events.await(t, r.exporter, "the last Secret", func(e *event) bool { return e.Name == "last" })
	r.command("snapshot", "--wait")
	planted.searchEvents("last")
	planted.sendLettersAgain()
	for _, page := range []string{"/", "/statusz", "/metrics", "/inventory", "/checkpoint", "/snapshot"} {
		planted.search(page, []byte(r.exporter.get(t, page)))
	}
	if diffs := planted.searchCommands(path, secretLogs()); !strings.Contains(diffs, `"(redacted)" -> "(redacted)"`) {
		t.Errorf("tail shows no change of a redacted value: %.3000s", diffs)
	}
	r.exporter.stop(t)

	planted.searchState()
	planted.searchObjects()
	hashes := 0
	for _, stream := range secretStreams() {
		planted.searchStream(stream)
	}
	planted.wantBefore(events.all(t))
	planted.searchFiles(func(name string, text []byte) {
		if strings.HasSuffix(name, ".ndjson") {
			hashes += bytes.Count(text, []byte(hashed))
		}
	})
	if hashes == 0 {
		t.Error("no file has a hash: nothing was redacted, or nothing was written")
	}
}

// letters makes Secrets that are kept as dead letters: one that the streams do not take, and one whose filter fails.
func (p *plant) letters(events *follower) {
	p.t.Helper()
	p.narrow(2 << 10)
	p.restart() // the sinks know the limit
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": p.metadata("huge"), "data": map[string]any{"a": "MQ=="}, "stringData": p.many(64),
	})
	failing := p.metadata("failing")
	failing["labels"] = map[string]any{"a": "b"}
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": failing, "data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(p.value()))},
	})
	events.await(p.t, p.r.exporter, "the Secret whose filter fails", func(e *event) bool { return e.op() == "gap" && e.Name == "failing" })
	eventually(p.t, deliveryLimit, "all letters are kept", func() bool { return len(p.r.letters()) >= len(secretLogs())+len(secretStreams()) })
	p.searchLetters(secretLogs(), "filter")
	p.searchLetters(slices.Sorted(maps.Keys(secretStreams())), "too_large")
	if !strings.Contains(p.r.exporter.log(p.t), "it may quote the object") {
		p.t.Error("the log tells of no filter that fails")
	}
}

// sendLettersAgain brings the letters into the sinks.
func (p *plant) sendLettersAgain() {
	p.t.Helper()
	p.narrow(-1)
	p.restart()
	p.searchCommand("deadletter", "replay", "--force")
	if left := p.r.letters(); len(left) > 0 {
		p.t.Errorf("letters are left: %+v", left)
	}
}

// spool lets changes happen that no stream can take.
func (p *plant) spool(events *follower) {
	p.t.Helper()
	p.r.broker.kill()
	for range 12 {
		p.update(secrets(), "kept")
		p.update(core("configmaps"), "settings")
	}
	p.secret("spooled")
	p.update(secrets(), "spooled")
	p.remove("spooled")
	events.await(p.t, p.r.exporter, "what the streams do not take", func(e *event) bool { return e.op() == "deleted" && e.Name == "spooled" })
	for _, name := range slices.Sorted(maps.Keys(secretStreams())) {
		p.spooled(name)
	}
}

func (p *plant) restart() {
	p.t.Helper()
	p.r.exporter.stop(p.t)
	p.r.exporter.start(p.t)
	eventually(p.t, deliveryLimit, "the exporter is ready", func() bool { return p.r.exporter.answers(p.t.Context(), "/readyz") })
}

// narrow sets the largest message, in bytes, that the streams take; -1 is any.
func (p *plant) narrow(limit int32) {
	p.t.Helper()
	js := p.r.broker.open().js
	for _, name := range secretStreams() {
		stream, err := js.Stream(p.t.Context(), name)
		if err != nil {
			p.t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		config.MaxMsgSize = limit
		if _, err := js.UpdateStream(p.t.Context(), config); err != nil {
			p.t.Fatal(err)
		}
	}
}

// many are values that are large together.
func (p *plant) many(n int) map[string]any {
	values := map[string]any{}
	for i := range n {
		values[fmt.Sprintf("k%d", i)] = p.value()
	}
	return values
}

func secrets() schema.GroupVersionResource { return core("secrets") }

// plant puts values into the cluster that must not be seen again.
type plant struct {
	t      *testing.T
	r      *rig
	values []string
}

// value makes a new one.
func (p *plant) value() string {
	v := fmt.Sprintf("planted-%d-value", len(p.values))
	p.values = append(p.values, v)
	return v
}

func (p *plant) secret(name string) {
	p.t.Helper()
	p.create(secrets(), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": p.metadata(name),
		"data": map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(p.value()))}, "stringData": map[string]any{"b": p.value()},
	})
}

func (p *plant) config(name string) {
	p.t.Helper()
	p.create(core("configmaps"), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"},
		"data": map[string]any{"token": p.value(), "plain": "x"},
	})
}

func (p *plant) create(resource schema.GroupVersionResource, manifest map[string]any) {
	p.t.Helper()
	p.createIn("default", resource, manifest)
}

// createIn returns the object's uid.
func (p *plant) createIn(namespace string, resource schema.GroupVersionResource, manifest map[string]any) string {
	p.t.Helper()
	made, err := p.r.client.Resource(resource).Namespace(namespace).Create(p.t.Context(), &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return string(made.GetUID())
}

// metadata has a copy of the values in the annotation of kubectl apply.
func (p *plant) metadata(name string) map[string]any {
	return map[string]any{
		"name": name, "namespace": "default",
		"annotations": map[string]any{lastApplied: `{"data":{"a":"` + p.value() + `"}}`},
	}
}

func (p *plant) update(resource schema.GroupVersionResource, name string) {
	p.t.Helper()
	patch := fmt.Sprintf(`{"stringData":{"b":%q}}`, p.value())
	if resource.Resource == "configmaps" {
		patch = fmt.Sprintf(`{"data":{"token":%q}}`, p.value())
	}
	_, err := p.r.client.Resource(resource).Namespace("default").Patch(p.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plant) remove(name string) {
	p.t.Helper()
	if err := p.r.client.Resource(secrets()).Namespace("default").Delete(p.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// wantBefore wants what could say too much: an update and a missed delete of a Secret that tell how it was.
func (p *plant) wantBefore(events []event) {
	p.t.Helper()
	updated, missed := false, false
	for i := range events {
		e := &events[i]
		updated = updated || e.Resource == "secrets" && strings.Contains(e.Before, "hmac-sha256:")
		missed = missed || e.Resource == "secrets" && e.FinalStateUnknown && bytes.Contains(e.Data, []byte("hmac-sha256:"))
	}
	if !updated || !missed {
		p.t.Errorf("an update has a Secret as it was: %t; a missed delete has: %t; want both", updated, missed)
	}
}

// forget lets the API server forget what it has not told yet.
func (p *plant) forget() {
	p.t.Helper()
	if _, err := p.r.cluster.Compact(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.r.restartAPIServer()
}

// searchObjects looks through the objects that the state keeps, which are packed in its files, and wants some.
func (p *plant) searchObjects() {
	p.t.Helper()
	store, err := checkpoint.Open(p.t.Context(), filepath.Join(p.r.dir, "state"), checkpoint.Options{ReadOnly: true})
	if err != nil {
		p.t.Fatal(err)
	}
	for stream, name := range map[string]string{"secrets": "kept", "configmaps": "settings"} {
		image, found, err := store.Object(stream, change.Key{Namespace: "default", Name: name})
		if !found || err != nil || !bytes.Contains(image.Object, []byte("hmac-sha256:")) {
			p.t.Errorf("of %s %s is kept %s (%t, %v)", stream, name, image.Object, found, err)
		}
		p.search("the object that is kept of "+name, image.Object)
	}
	if err := store.Close(); err != nil {
		p.t.Error(err)
	}
}

// search looks for every value, in the clear and as the API server encodes it.
func (p *plant) search(where string, text []byte) {
	p.t.Helper()
	for _, v := range p.values {
		if bytes.Contains(text, []byte(v)) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(v)))) {
			p.t.Errorf("%s has %s", where, v)
		}
	}
}

// searchFiles looks through everything in the rig's directory.
func (p *plant) searchFiles(also func(name string, text []byte)) {
	p.t.Helper()
	err := filepath.WalkDir(p.r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		p.search(path, text)
		also(path, text)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// searchStream looks through all messages and their headers, and wants some.
func (p *plant) searchStream(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), deliveryLimit)
	defer cancel()
	stream, err := p.r.broker.open().js.Stream(ctx, name)
	if err != nil {
		p.t.Fatal(err)
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		p.t.Errorf("stream %s is empty", name)
	}
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // a bucket has the newest of each key alone
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.search(fmt.Sprintf("stream %s, message %d", name, seq), fmt.Appendf(m.Data, "%v", m.Header))
	}
}
