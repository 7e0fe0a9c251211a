package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/sink"
	sinkkafka "github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/python"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// versions are those that the tests install of what the pages tell to install.
var versions = map[string]string{
	"kafka-python[zstd]": "3.0.12", "confluent-kafka[avro,schemaregistry]": "2.16.1", "cloudevents": "2.2.0",
	"nats-py": "2.16.0", "duckdb": "2.0.1", "polars": "2.1.0",
}

var installed = regexp.MustCompile(`(?m)^\$ pip install (.+)$`)

// libraries are what a program of the page needs: all that the last pip install above its line names.
func libraries(t *testing.T, page, text string, b *block) (all []string) {
	t.Helper()
	above := strings.Join(strings.Split(text, "\n")[:b.line], "\n")
	found := installed.FindAllStringSubmatch(above, -1)
	if len(found) == 0 {
		t.Fatalf("%s:%d: the page does not say what to install", page, b.line)
	}
	for name := range strings.FieldsSeq(strings.ReplaceAll(found[len(found)-1][1], "'", "")) {
		if versions[name] == "" {
			t.Fatalf("%s:%d: no version of %s is tested", page, b.line, name)
		}
		all = append(all, name+"=="+versions[name])
	}
	return all
}

// TestThePythonOfThePagesReadsATopic as it is printed, with the libraries that the page names, from topics as a sink
// writes them: compressed with zstd, in a transaction, with frames, a gap of one namespace, and a tombstone; in JSON
// and in Avro.
func TestThePythonOfThePagesReadsATopic(t *testing.T) {
	kafka.RequireReal(t)
	cluster := kafka.Start(t, kafka.Options{})
	registry := httptest.NewServer(http.HandlerFunc(oneSchema))
	t.Cleanup(registry.Close)
	fill(t, cluster, "k8s.prod-eu1.configmaps", &encode.Options{Format: encode.FormatCloudEvents})
	fill(t, cluster, "avro", &encode.Options{Format: encode.FormatDebezium, Schemas: configMaps{}})
	ran := map[string]int{}
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			if !b.is("python") || !strings.Contains(b.text, "kafka:9092") {
				continue
			}
			program := strings.NewReplacer("kafka:9092", cluster.Brokers()[0], "http://registry:8081", registry.URL).Replace(b.text)
			want := "changes may be missing: gone\ngap shop//gap 0 not whole\nsnapshot.begin shop//snapshot.begin 0 not whole\n" +
				"replaced shop/a 1 not whole\nadded shop/b 2 not whole\nsnapshot.end shop//snapshot.end 2 whole\n" +
				"deleted shop/b 1 whole\nadded shop/c 2 whole\nresolved shop//resolved 2 whole\n"
			if strings.Contains(b.text, "complete up to") {
				want = "complete up to 1970-01-01T00:00:00.001000Z 2\n"
			}
			if strings.Contains(b.text, "AvroDeserializer") {
				program = strings.ReplaceAll(program, "k8s.prod-eu1.configmaps", "avro")
				want = inAvro
			}
			if strings.Contains(b.text, "cloudevents") {
				want = bySDK
			}
			ran[want]++
			if got, said := readsOn(t, libraries(t, page, text, &b), program, strings.Count(want, "\n")); got != want {
				t.Errorf("%s:%d prints\n%s\nwant\n%s\n%s", page, b.line, got, want, said)
			}
		}
	}
	if len(ran) != 4 {
		t.Errorf("the pages have programs for topics of %d kinds", len(ran))
	}
}

// TestThePythonOfThePagesReadsJetStream as it is printed: a stream, a bucket and a single subject.
func TestThePythonOfThePagesReadsJetStream(t *testing.T) {
	w := newWorld(t)
	w.keepBucket()
	w.await("the bucket is whole", func() bool { return w.lastOf("KV_CLUSTER", "$KV.CLUSTER.core.configmaps.shop.-", "snapshot.end") })
	w.put("settings-2", "red")
	w.await("the change is in both", func() bool {
		return w.lastOf("K8S", "k8s.dev.core.configmaps.shop.settings-2", "red") && w.lastOf("KV_CLUSTER", "$KV.CLUSTER.core.configmaps.shop.settings-2", "red")
	})
	ran := 0
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			if !b.is("python") || !strings.Contains(b.text, "import nats") {
				continue
			}
			program := strings.NewReplacer("nats://nats:4222", w.nats.URL(), "prod-eu1", "dev").Replace(b.text)
			want, lines := "snapshot.end shop/- 3 whole\n", 7
			switch {
			case strings.Contains(b.text, "key_value"):
				want, lines = "updated core.configmaps.shop.settings-2 3\nall keys are read: 3\n", 5
			case strings.Contains(b.text, "get_last_msg"):
				want, lines = "'colour': 'red'", 1
			}
			ran++
			got, said := readsOn(t, libraries(t, page, text, &b), program, lines)
			t.Logf("%s:%d prints\n%s", page, b.line, got)
			if !strings.Contains(got, want) {
				t.Errorf("%s:%d prints\n%s\nwithout\n%s\n%s", page, b.line, got, want, said)
			}
		}
	}
	if ran != 3 {
		t.Errorf("the pages have %d programs for NATS", ran)
	}
}

// TestThePythonOfADigestMakesThatOfThePage: both are beside each other.
func TestThePythonOfADigestMakesThatOfThePage(t *testing.T) {
	page := filepath.Join("docs", "formats.md")
	text := pages(t)[page]
	for _, b := range blocks(t, page, text) {
		if !b.is("python") {
			continue
		}
		said, err := exec.Command("python3", "-c", b.text+"\n"+`print(digest(["shop/web/u-1/123456", "/node-1/u-2/7"]))`).CombinedOutput()
		if err != nil || len(said) != 33 || !strings.Contains(text, `"sum":"`+strings.TrimSpace(string(said))+`"`) {
			t.Errorf("%s:%d prints %s, %v", page, b.line, said, err)
		}
	}
}

// TestThePythonOfThePagesReadsAFile as it is printed.
func TestThePythonOfThePagesReadsAFile(t *testing.T) {
	w := newWorld(t)
	if err := w.client.CoreV1().ConfigMaps("shop").Delete(t.Context(), "settings-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.await("the delete is in the file", func() bool { return bytes.Contains(w.read("changes.ndjson"), []byte("dev.kubecdc.deleted")) })
	w.stop()
	page, ran := filepath.Join("docs", "reading-files.md"), 0
	text := pages(t)[page]
	for _, b := range blocks(t, page, text) {
		if !b.is("python") {
			continue
		}
		ran++
		cmd := python.Command(t, libraries(t, page, text, &b), "-c", b.text)
		cmd.Dir = w.dir
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d: %v\n%s", page, b.line, err, said)
		}
		for _, want := range []string{"configmaps shop settings-1 ", "configmaps shop settings-2 ", "deployments shop web "} {
			if !bytes.Contains(said, []byte(want)) {
				t.Errorf("%s:%d prints\n%s\nwithout %s", page, b.line, said, want)
			}
		}
		if bytes.Contains(said, []byte("settings-3")) {
			t.Errorf("%s:%d has an object that is gone:\n%s", page, b.line, said)
		}
		if strings.Contains(b.text, "images") && !bytes.Contains(said, []byte("shop web web\n")) {
			t.Errorf("%s:%d does not print the image of the Deployment:\n%s", page, b.line, said)
		}
	}
	if ran != 2 {
		t.Errorf("the page has %d programs", ran)
	}
}

// inAvro is what the program for Avro prints.
const inAvro = `gap {"reason":"gone","lastDelivered":"1","resourceVersion":"9"}
snapshot.begin {"resourceVersion":"9","reason":"gone"}
replaced shop/a ConfigMap
added shop/b ConfigMap
snapshot.end {"resourceVersion":"9","reason":"gone","replaced":0,"deleted":0,"synced":0}
deleted shop/b is gone
deleted tombstone
added shop/c ConfigMap
resolved {"resourceVersion":"9","time":"1970-01-01T00:00:00.001000Z"}
`

// bySDK is what the program with the SDK of CloudEvents prints.
const bySDK = `dev.kubecdc.gap  {'reason': 'gone', 'lastDelivered': '1', 'resourceVersion': '9'}
dev.kubecdc.snapshot.begin  {'resourceVersion': '9', 'reason': 'gone'}
dev.kubecdc.replaced a {'kind': 'ConfigMap'}
dev.kubecdc.added b {'kind': 'ConfigMap'}
dev.kubecdc.snapshot.end  {'resourceVersion': '9', 'reason': 'gone', 'replaced': 0, 'deleted': 0, 'synced': 0}
dev.kubecdc.deleted b {'kind': 'ConfigMap'}
dev.kubecdc.added c {'kind': 'ConfigMap'}
dev.kubecdc.resolved  {'resourceVersion': '9', 'time': '1970-01-01T00:00:00.001000Z'}
`

// configMaps knows one schema, under one id for keys and another for values.
type configMaps struct{}

var (
	configMap = encode.ValueType(encode.FormatDebezium, &theMaps, typed.NewRecord("ConfigMap", []typed.Field{{JSON: "kind", Type: typed.Of(typed.String)}}), false)
	theMaps   = change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}
)

func (configMaps) Of(*change.Resource) *encode.Schema {
	return &encode.Schema{Key: 7, Value: 8, Type: configMap}
}

// oneSchema answers as a registry does that has these.
func oneSchema(w http.ResponseWriter, r *http.Request) {
	schema := map[string][]byte{"/schemas/ids/7": encode.KeySchema(&theMaps), "/schemas/ids/8": configMap.Avro()}[r.URL.Path]
	if schema == nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"schema": string(schema)})
}

// readsOn runs a program that reads on for ever until it has printed so many lines, and returns them, and what else it
// said.
func readsOn(t *testing.T, libraries []string, program string, lines int) (printed, said string) {
	t.Helper()
	cmd := python.Command(t, libraries, "-u", "-c", program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	running, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(limit, running.Kill)
	defer stop.Stop()
	for scanner := bufio.NewScanner(out); lines > 0 && scanner.Scan(); lines-- {
		printed += scanner.Text() + "\n"
	}
	running.Kill()
	return printed, stderr.String()
}

// fill writes records to the topic, as the exporter does.
func fill(t *testing.T, cluster *kafka.Cluster, topic string, o *encode.Options) {
	t.Helper()
	written, err := sinkkafka.New(sinkkafka.Options{
		Wire: wire.Options{Brokers: cluster.Brokers()}, Topics: []string{topic}, Create: true, Partitions: 1, Replication: 1,
		Delivery: sinkkafka.Transactional, TransactionalID: "kubecdc-docs-" + topic,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close(t.Context())
	if _, err = sinktest.Open(t.Context(), written, ""); err == nil {
		_, err = written.Write(t.Context(), encoded(t, topic, o))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// encoded are the records of a stream of one namespace.
func encoded(t *testing.T, topic string, o *encode.Options) (messages []sink.Message) {
	t.Helper()
	stream := &change.Stream{Resource: theMaps, Namespace: "shop"}
	o.Cluster, o.ClusterUID, o.Transport, o.Tombstones = "dev", "0b6f3c1e", encode.Kafka, true
	encoder := encode.NewEncoder(*o)
	snapshot := &change.Snapshot{ID: "9.1", Reason: change.Gone, From: "1", ResourceVersion: "9"}
	var err error
	tell := func(op change.Op, name string) {
		rec := &change.Record{Stream: stream, Op: op, ResourceVersion: "9", Received: time.UnixMilli(1), Snapshot: snapshot}
		if op.OfObject() {
			rec.Key, rec.UID, rec.Object = change.Key{Namespace: "shop", Name: name}, "u-1", []byte(`{"kind":"ConfigMap"}`)
		}
		if messages, err = encoder.Encode(t.Context(), messages, rec); err != nil {
			t.Fatal(err)
		}
	}
	tell(change.Gap, "")
	tell(change.SnapshotBegin, "")
	tell(change.Replaced, "a")
	tell(change.Added, "b")
	tell(change.SnapshotEnd, "")
	tell(change.Deleted, "b")
	tell(change.Added, "c")
	snapshot = nil
	tell(change.Resolved, "")
	for i := range messages {
		messages[i].Destination = topic
	}
	return messages
}
