package docs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
)

// standIn is a module kafka whose consumer has the messages of a file. What a broker does to them, its own tests hold.
const standIn = `import base64, collections, json, os
Message = collections.namedtuple("Message", "key value headers")
def text(b): return None if b is None else base64.b64decode(b)
def KafkaConsumer(*topics, **settings):
    for m in json.load(open(os.environ["MESSAGES"])):
        yield Message(text(m["Key"]), text(m["Value"]), [(h["Name"], h["Value"].encode()) for h in m["Headers"] or []])
`

// TestThePythonOfThePagesReadsATopic as it is printed: frames, a gap of one namespace, a delete and its tombstone.
func TestThePythonOfThePagesReadsATopic(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 is here")
	}
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}, Namespace: "shop"}
	encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f3c1e", Format: encode.FormatCloudEvents, Transport: encode.Kafka, Tombstones: true})
	snapshot := &change.Snapshot{ID: "9.1", Reason: change.Gone, From: "1", ResourceVersion: "9"}
	var messages []any
	for i, op := range []change.Op{change.Gap, change.SnapshotBegin, change.Replaced, change.Added, change.SnapshotEnd, change.Deleted} {
		rec := &change.Record{Stream: stream, Op: op, ResourceVersion: "9", Received: time.UnixMilli(1), Snapshot: snapshot}
		if op.OfObject() {
			rec.Key, rec.UID, rec.Object = change.Key{Namespace: "shop", Name: string(rune('a' + i%2))}, "u-1", []byte(`{"kind":"ConfigMap"}`)
		}
		encoded, err := encoder.Encode(t.Context(), nil, rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range encoded {
			messages = append(messages, map[string]any{"Key": m.Key, "Value": m.Value, "Headers": m.Headers})
		}
	}
	dir := t.TempDir()
	text, err := json.Marshal(messages)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "messages"), text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kafka.py"), []byte(standIn), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			if !b.is("python") || !strings.Contains(b.text, "KafkaConsumer") {
				continue
			}
			ran++
			cmd := exec.CommandContext(t.Context(), python, "-c", b.text)
			cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "MESSAGES="+filepath.Join(dir, "messages"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			output, err := cmd.Output()
			const want = "changes may be missing: gone\ngap shop//gap 0\nsnapshot.begin shop//snapshot.begin 0\nreplaced shop/a 1\n" +
				"added shop/b 2\nsnapshot.end shop//snapshot.end 2\ndeleted shop/b 2\n"
			if err != nil || string(output) != want {
				t.Errorf("%s:%d: %v: %s\nprints %s\nwant   %s", page, b.line, err, &stderr, output, want)
			}
		}
	}
	if ran == 0 {
		t.Error("no page reads a topic")
	}
}
