package consumers

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/python"
	"github.com/kubecdc/kubecdc/test/registry"
)

// typedConfiguration is of one exporter with every format that a registry can have, and every way to name subjects.
const typedConfiguration = `
cluster: typed
resources: [configmaps, secrets, clusterroles, widgets.example.com]
discovery: {interval: 1s}
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: t1, kafka: {brokers: [%[2]q], topic: "debezium.{resource}", partitions: 3, tombstones: true, registry: {url: %[3]q, compatibility: full_transitive}}, format: debezium}
- {name: t2, kafka: {brokers: [%[2]q], topic: "object.{resource}", partitions: 3, registry: {url: %[3]q, subject: record}}, format: object}
- {name: t3, kafka: {brokers: [%[2]q], topic: events, partitions: 3, registry: {url: %[3]q, subject: topic-record}}, format: cloudevents-binary, drop: [metadata.annotations], redact: [spec.size]}
`

// typedStage is a stage with a registry.
type typedStage struct {
	*stage
	registry *registry.Registry
	schemas  *sr.Client
}

func newTypedStage(t *testing.T, configuration string) *typedStage {
	t.Helper()
	kafka.RequireReal(t)
	if err := registry.Available(t.Context()); err != nil {
		t.Skip(err)
	}
	s := &typedStage{}
	dir := t.TempDir()
	t.Cleanup(func() { s.registry.Stop() })
	s.stage = newStage(t, func() (err error) { s.registry, err = registry.Start(t.Context(), dir); return err })
	s.configure(t, configuration, s.registry.URL())
	var err error
	if s.schemas, err = sr.NewClient(sr.URLs(s.registry.URL())); err != nil {
		t.Fatal(err)
	}
	return s
}

// describe gives the widgets a schema.
func (s *typedStage) describe(t *testing.T, properties string) {
	t.Helper()
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	patch := `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":` + properties + `}}}}]`
	if _, err := s.w.client.Resource(kinds).Patch(t.Context(), "widgets.example.com", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitVersions waits until the subject has so many.
func (s *typedStage) awaitVersions(t *testing.T, subject string, versions int) {
	t.Helper()
	eventually(t, func() error {
		have, err := s.schemas.SubjectVersions(t.Context(), subject)
		if err == nil && len(have) < versions {
			err = fmt.Errorf("it has the versions %v\n%s", have, s.x.log())
		}
		return err
	})
}

// eventually waits until nothing is wrong any more.
func eventually(t *testing.T, wrong func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for err := wrong(); err != nil; err = wrong() {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

// TestTypedTopicsAreReadByTheirSchemas lets everything happen, a CRD change, and the registry be replaced. Each value
// is read with nothing but the schema of its id, and what is left in the end is what the cluster has.
func TestTypedTopicsAreReadByTheirSchemas(t *testing.T) {
	s := newTypedStage(t, typedConfiguration)
	s.w.populate()
	s.describe(t, `{"size":{"type":"integer"},"name":{"type":"string"}}`)
	s.x.start(t)
	s.x.settle(t)
	s.w.change()
	s.describe(t, `{"size":{"type":"string"},"colour":{"type":"string"}}`)
	eventually(t, func() error { // the server validates by the new schema a moment later
		_, err := s.w.on(widgets, "default").Patch(t.Context(), "second", types.MergePatchType, []byte(`{"spec":{"size":"large","colour":"red","name":1.50}}`), metav1.PatchOptions{})
		return err
	})
	s.awaitVersions(t, "debezium.widgets.example.com-value", 2)
	s.w.patch(widgets, "default", "second", `{"spec":{"colour":"green"}}`)
	s.x.settle(t)
	s.x.process.Kill()
	s.w.forget(s.cluster)
	s.x.start(t)
	s.x.reconciles(t, "gone", len(resources()))
	s.x.settle(t)
	log := newTypedLog(t, s)
	t.Run("deadletter", log.letters)
	want := s.w.list(resources())
	for _, topic := range []string{"debezium.", "object."} {
		t.Run(topic, func(t *testing.T) { same(t, log.fold(t, topic), want) })
	}
	t.Run("events", func(t *testing.T) { log.events(t, want) })
	t.Run("verify", func(t *testing.T) {
		for _, name := range []string{"t1", "t2", "t3"} {
			output(t, append([]string{s.x.binary, "verify", "--sink", name}, s.x.config...)...)
		}
	})
	t.Run("tail", s.tails)
	t.Run("diff", s.differs)
	s.registry.Stop()
	if err := s.registry.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.awaitVersions(t, "debezium.widgets.example.com-value", 1)
	s.w.patch(widgets, "default", "second", `{"spec":{"colour":"blue"}}`)
	s.x.settle(t)
	s.x.stop(t)
	t.Run("replaced", func(t *testing.T) {
		records := s.kafka.ConsumeFast(t, "debezium.widgets.example.com", kafka.JudgeOptions{})
		var newest kafka.Record // of the updates
		for _, r := range records {
			for _, h := range r.Headers {
				if h.Key == "kubecdc-op" && string(h.Value) == "updated" && !r.Timestamp.Before(newest.Timestamp) {
					newest = r
				}
			}
		}
		if got := newTypedLog(t, s).restore(t, []kafka.Record{newest}); !strings.Contains(string(got[0]), `"blue"`) {
			t.Errorf("the newest record is %s", got[0])
		}
	})
}

// tails checks that each topic's changes are shown as those of a topic of plain JSON.
func (s *typedStage) tails(t *testing.T) {
	for _, name := range []string{"t1", "t2", "t3"} {
		command := append([]string{s.x.binary, "tail", "--sink", name, "--since", "start", "--follow=false", "--diff"}, s.x.config...)
		text := strings.Join(output(t, command...), "\n")
		for _, want := range []string{`spec.colour: "red" -> "green"`, "default/second", "deleted"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the tail lacks %q:\n%s", name, want, tail(text))
			}
		}
	}
}

// differs compares what is registered with the server, where a newer version is taken and where it is refused.
func (s *typedStage) differs(t *testing.T) {
	run := func(command ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), s.x.binary, append(command, s.x.config...)...)
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	s.shows(t, run)
	said, err := run("schema", "diff", "widgets.example.com", "--sink", "t1")
	for _, want := range []string{"-value, version 2", "~ before.spec.size: integer, now string", "- before.spec.name: string", "a run registers nothing"} {
		if err != nil || !strings.Contains(said, want) {
			t.Errorf("the difference lacks %q, %v:\n%s", want, err, said)
		}
	}
	subject, others := "debezium.widgets.example.com-value", "its newest version is not the exporter's"
	for _, result := range s.schemas.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatNone}, subject) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	if _, err = s.schemas.CreateSchema(t.Context(), subject, sr.Schema{Schema: `{"type":"record","name":"Other","fields":[]}`, Type: sr.TypeAvro}); err != nil {
		t.Fatal(err)
	}
	if said, err = run("schema", "diff", "widgets.example.com", "--sink", "t1"); err == nil || !strings.Contains(said, subject) || !strings.Contains(said, others) {
		t.Errorf("the refused difference is %s", said)
	}
	said, err = run("check")
	if err == nil || !strings.Contains(said, "sink t1: resource widgets.example.com: ") || strings.Contains(said, "sink t2: resource") {
		t.Errorf("check says, %v:\n%s", err, said)
	}
	s.describe(t, `{"size":{"type":"string"},"colour":{"type":"string"},"extra":{"type":"boolean"}}`)
	eventually(t, func() error { // the stream goes on with the version that is known
		if !strings.Contains(s.x.log(), others) {
			return fmt.Errorf("the refusal is not told:\n%s", s.x.log())
		}
		return nil
	})
}

// shows prints what would be registered, and the schema of an object, and writes the schemas of objects as files.
func (s *typedStage) shows(t *testing.T, run func(...string) (string, error)) {
	for as, want := range map[string]string{"avro": `"kubecdc.example.com.Widget.Envelope"`, "jsonschema": `"$defs"`} {
		said, err := run("schema", "show", "widgets.example.com", "--sink", "t1", "--as", as)
		if err != nil || !strings.Contains(said, want) || !strings.Contains(said, `"colour"`) {
			t.Errorf("the schema as %s lacks %s, %v:\n%s", as, want, err, said)
		}
	}
	dir := t.TempDir()
	if said, err := run("schema", "export", dir); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "widgets.example.com.json")); err != nil || !strings.Contains(string(text), `"colour"`) {
		t.Errorf("the exported schema is %s, %v", text, err)
	}
}

// typedLog reads typed topics with libraries of others.
type typedLog struct {
	*typedStage
	python  *exec.Cmd
	dir     string
	schemas map[uint32]string // files of the directory
}

func newTypedLog(t *testing.T, s *typedStage) *typedLog {
	return &typedLog{s, python.Command(t, restoring(), "python/restore.py"), t.TempDir(), map[uint32]string{}}
}

// restore makes JSON of the records' values again, nil of none.
func (l *typedLog) restore(t *testing.T, records []kafka.Record) (all [][]byte) {
	t.Helper()
	var in, out, stderr bytes.Buffer
	for _, r := range records {
		if r.Value != nil {
			schema, body := l.schema(t, r.Value)
			fmt.Fprintf(&in, "{\"schema\":%q,\"value\":%q}\n", schema, base64.StdEncoding.EncodeToString(body))
		}
	}
	cmd := exec.CommandContext(t.Context(), l.python.Path, l.python.Args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = l.python.Env, &in, &out, &stderr
	if err := child.Run(cmd); err != nil {
		t.Fatalf("%v: %s", err, tail(stderr.String()))
	}
	lines := bytes.Split(out.Bytes(), []byte("\n"))
	for _, r := range records {
		if r.Value == nil {
			all = append(all, nil)
			continue
		}
		all, lines = append(all, lines[0]), lines[1:]
	}
	return all
}

// schema is the file of the schema whose id the value begins with.
func (l *typedLog) schema(t *testing.T, value []byte) (path string, body []byte) {
	t.Helper()
	if len(value) < 5 || value[0] != 0 {
		t.Fatalf("a value begins with no id: %q", value)
	}
	id := binary.BigEndian.Uint32(value[1:])
	if l.schemas[id] == "" {
		text, err := l.typedStage.schemas.SchemaByID(t.Context(), int(id))
		if err != nil {
			t.Fatal(err)
		}
		l.schemas[id] = filepath.Join(l.dir, fmt.Sprintf("%d.schema", id))
		if err := os.WriteFile(l.schemas[id], []byte(text.Schema), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l.schemas[id], value[5:]
}

// fold is what the topics leave in the end.
func (l *typedLog) fold(t *testing.T, prefix string) table {
	t.Helper()
	all := table{}
	for resource := range resources() {
		records := l.kafka.ConsumeFast(t, prefix+resource, kafka.JudgeOptions{})
		last := map[string][]byte{}
		for i, text := range l.restore(t, records) {
			var envelope struct{ After json.RawMessage }
			if strings.HasSuffix(prefix, "debezium.") && text != nil {
				if err := json.Unmarshal(text, &envelope); err != nil {
					t.Fatal(err)
				}
				if text = envelope.After; string(text) == "null" {
					text = nil
				}
			}
			last[string(records[i].Key)] = text
		}
		for _, text := range last {
			if text != nil {
				object := comparable(t, text)
				metadata := object["metadata"].(map[string]any)
				namespace, _ := metadata["namespace"].(string)
				all[key(resource, namespace, metadata["name"].(string))] = object
			}
		}
	}
	return all
}

// events checks that the topic of all resources has the objects after the sink's rules.
func (l *typedLog) events(t *testing.T, want table) {
	records := l.kafka.ConsumeFast(t, "events", kafka.JudgeOptions{})
	found := map[string]bool{}
	for i, text := range l.restore(t, records) {
		headers := map[string]string{}
		for _, h := range records[i].Headers {
			headers[h.Key] = string(h.Value)
		}
		if text == nil && headers["ce_type"] == "" && headers["kubecdc-op"] == "deleted" {
			continue // a tombstone
		}
		if headers["ce_type"] == "" || (text == nil) == (headers["content-type"] == "application/avro") {
			t.Errorf("an event has the headers %v and the value %.80q", headers, text)
		}
		if text == nil {
			continue
		}
		object := comparable(t, text)
		metadata := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		found[fmt.Sprint(object["kind"], namespace, metadata["name"], metadata["resourceVersion"])] = true
		if spec, some := object["spec"].(map[string]any); metadata["annotations"] != nil || some && spec["size"] != nil && !strings.HasPrefix(fmt.Sprint(spec["size"]), "hmac-sha256:") {
			t.Errorf("the rules are not applied: %s", text)
		}
	}
	for k, object := range want {
		metadata := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		if !found[fmt.Sprint(object["kind"], namespace, metadata["name"], metadata["resourceVersion"])] {
			t.Errorf("the state of %s is not among the events", k)
		}
	}
}

// letters lets a topic refuse an object as too large, and sends the dead letter again when the topic takes it. What is
// there then is read by its schema, and is the object.
func (l *typedLog) letters(t *testing.T) {
	const topic, name = "object." + configMaps, "large"
	l.kafka.AlterTopicConfig(t, topic, map[string]string{"max.message.bytes": "65536"})
	random := make([]byte, 128<<10)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	l.w.create(configMaps, "default", name, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","data":{"random":%q}}`, base64.StdEncoding.EncodeToString(random)))
	command := func(action string) string {
		return strings.Join(output(t, l.x.binary, "deadletter", action, "--sink", "t2", "--state-dir", filepath.Join(l.x.dir, "state")), "\n")
	}
	eventually(t, func() error {
		if said := command("list"); !strings.Contains(said, name) {
			return fmt.Errorf("there is no letter: %s\n%s", said, l.x.log())
		}
		return nil
	})
	if said := command("show"); !strings.Contains(said, `"random"`) {
		t.Errorf("the letter shows no object: %.1000s", said)
	}
	l.kafka.AlterTopicConfig(t, topic, map[string]string{"max.message.bytes": "1048588"})
	if said := command("replay"); strings.Count(said, "delivered") != 1 {
		t.Fatalf("the replay says %s\n%s", said, l.x.log())
	}
	var found []kafka.Record
	for _, r := range l.kafka.ConsumeFast(t, topic, kafka.JudgeOptions{}) {
		if string(r.Key) == "default/"+name && r.Value != nil {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the object is there %d times", len(found))
	}
	same(t, table{name: comparable(t, l.restore(t, found)[0])}, table{name: l.w.list(resources())[key(configMaps, "default", name)]})
}
