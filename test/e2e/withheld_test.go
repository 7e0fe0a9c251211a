package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// configured makes the exporter read the text alone, beside what its flags say of the cluster, the state and the port.
func (r *rig) configured(text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "configured.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if named := slices.Index(r.exporter.args, "--resources"); named >= 0 {
		r.exporter.args = append(slices.Delete(r.exporter.args, named, named+2), "--config", path)
	}
	r.exporter.sinks = nil
}

// TestI4I9ARecordWhoseFilterFailsIsKeptRedactedAndSentAgain: the object is whole in its letter, but what may not leave
// is hashed there, too. When the filter is right it is sent again.
func TestI4I9ARecordWhoseFilterFailsIsKeptRedactedAndSentAgain(t *testing.T) {
	r := newRig(t)
	config := `
resources: [{resource: secrets, namespaces: [shop], before: true, filter: %q, filterFailure: deadletter, drop: [.metadata.annotations.cut]}]
sinks:
- {name: bus, nats: {url: "nats://` + r.broker.address() + `", stream: ` + streamName + `}}
- {name: out, file: {path: "` + r.path() + `"}}
`
	r.configured(fmt.Sprintf(config, `object.metadata.labels["team"] == "a"`))
	r.exporter.start(t)
	p := plant{t: t, r: r}
	secret := func(name string, labels map[string]any) string {
		t.Helper()
		return string(r.create(secrets(), "shop", map[string]any{
			"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": p.value()},
			"metadata": map[string]any{"name": name, "labels": labels, "annotations": map[string]any{"cut": p.value(), "stays": "here"}},
		}).GetUID())
	}
	r.await(secret("first", map[string]any{"team": "a"})) // what comes now is after the snapshot
	failing := secret("failing", map[string]any{"other": "x"})
	passing := secret("passing", map[string]any{"team": "a"})
	r.await(passing)
	letters := r.letters()
	if len(letters) != 2 || letters[0].Reason != "filter" || letters[1].Reason != "filter" || letters[0].Name != "failing" || letters[0].Sink == letters[1].Sink {
		t.Fatalf("letters are %+v", letters)
	}
	for _, l := range letters {
		shown := r.command("deadletter", "show", "--id", l.ID, "--sink", l.Sink)
		for _, want := range []string{`"hmac-sha256:`, `"stays":"hmac-sha256:`, `"type":"Opaque"`} {
			if !strings.Contains(strings.ReplaceAll(shown, `": `, `":`), want) {
				t.Errorf("the letter has no %s: %s", want, shown)
			}
		}
		if p.search("letter "+l.ID, []byte(shown)); strings.Contains(shown, `"cut"`) {
			t.Errorf("the letter has what is dropped: %s", shown)
		}
	}
	if n := r.exporter.metric(t, `kubecdc_sink_rejected_total{reason="filter",sink="bus"}`); n != 1 {
		t.Errorf("%v records are counted as rejected by the filter", n)
	}
	r.exporter.stop(t)

	r.configured(fmt.Sprintf(config, `!has(object.metadata.labels.team) || object.metadata.labels["team"] == "a"`))
	r.exporter.start(t)
	r.await(secret("second", map[string]any{"other": "x"}))
	if out := r.command("deadletter", "replay"); strings.Count(out, "delivered") != 2 {
		t.Errorf("replay says %s", out)
	}
	r.exporter.stop(t)
	for _, sink := range r.sinks() {
		if got := r.toldTo(sink, failing); got != "gap, added current" {
			t.Errorf("%s tells %q", sink.name, got)
		}
	}
	if left := r.letters(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
	p.searchFiles(func(string, []byte) {})
}
