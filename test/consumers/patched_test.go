package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/python"
	"github.com/kubecdc/kubecdc/test/validate"
)

// jsonpatch is the library's version of PyPI which the tests install.
const jsonpatch = "jsonpatch==1.33"

// patching is of an exporter with patches wherever something comes between two updates: a sink's own rules, a broker
// that is away, with a spool and with merged records, objects that are too large for it, and ones whose filter fails.
const patching = `
cluster: patched
resources:
- {resource: configmaps, namespaces: [fold], before: true, filter: 'int(object.data.n) >= 0', filterFailure: deadletter, ignore: [.metadata.annotations]}
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: whole, file: {path: %[1]s/whole.ndjson}}
- {name: file, file: {path: %[1]s/file.ndjson}, updates: patch}
- {name: narrow, file: {path: %[1]s/narrow.ndjson}, updates: patch, filter: 'int(object.data.n) %% 3 != 0', drop: [.data.pad]}
- {name: spooled, nats: {url: %[3]q, stream: spooled, subject: "spooled.{name}"}, format: cloudevents-binary, updates: patch, queue: {records: 64, full: spool}}
- {name: merged, nats: {url: %[3]q, stream: merged, subject: "merged.{name}"}, updates: patch, queue: {full: coalesce}, oversize: trim, trim: [.data.pad]}
- {name: lake, kafka: {brokers: [%[2]q], topic: lake, partitions: 1, delivery: transactional}, updates: patch}
`

// folding is the cluster, the broker that goes and comes back, and who writes.
type folding struct {
	*stage
	t      *testing.T
	broker *natsserver.Server
	away   bool // the broker
	maps   dynamic.ResourceInterface
	random *rand.Rand
}

// TestPythonFoldsPatchedStreams: after kills, with a broker that comes and goes, dead letters, cuts and a gap, what
// jsonpatch makes of each stream is what the stream of whole objects says, and what the cluster has. E2E_KILLS is how
// often the exporter is killed.
func TestPythonFoldsPatchedStreams(t *testing.T) {
	fold := python.Command(t, []string{jsonpatch}, "python/fold.py")
	f := newFolding(t)
	kills := 4
	if asked, err := strconv.Atoi(os.Getenv("E2E_KILLS")); err == nil {
		kills = asked
	}
	f.x.start(t)
	f.write(300)
	for i := range kills {
		f.write(f.random.IntN(300))
		f.x.process.Kill()
		if i == kills/2 {
			f.forget()
		}
		f.toggle()
		f.x.start(t)
		f.write(f.random.IntN(300))
		f.toggle()
	}
	f.end()
	f.judge(fold)
}

func newFolding(t *testing.T) *folding {
	t.Helper()
	f := &folding{t: t, stage: newStage(t), random: rand.New(rand.NewPCG(1, 7))}
	f.broker = natsserver.Start(t, func(o *natsserver.Options) { o.MaxPayload = 32 << 10 })
	f.configure(t, patching, f.broker.URL())
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "fold"}}}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := f.w.client.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.maps = f.w.on(configMaps, "fold")
	return f
}

// toggle stops the broker, or starts it.
func (f *folding) toggle() {
	f.t.Helper()
	if f.away = !f.away; f.away {
		f.broker.Stop()
	} else {
		f.broker.Restart(f.t)
	}
}

// forget changes what the exporter does not see, and lets the server forget it.
func (f *folding) forget() {
	f.t.Helper()
	f.write(100)
	restartAPIServer(f.t, f.cluster)
}

// write changes so many objects of a few, in every way. An object that is not there is made.
func (f *folding) write(changes int) {
	f.t.Helper()
	for range changes {
		name := fmt.Sprint("map-", f.random.IntN(12))
		data := map[string]any{"n": strconv.Itoa(f.random.IntN(1000)), "other.key": "x"}
		metadata := map[string]any{}
		switch f.random.IntN(30) {
		case 0:
			if err := f.maps.Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				f.t.Fatal(err)
			}
			continue
		case 1:
			data["n"] = "no number"
		case 2:
			data["pad"] = strings.Repeat("large", 10<<10) // for the broker
		case 3:
			data = nil
			metadata["annotations"] = map[string]any{"seen": strconv.Itoa(f.random.Int())}
		case 4:
			metadata["labels"] = map[string]any{"a.b/c": strconv.Itoa(f.random.IntN(3)), "team": nil}
		case 5:
			metadata["labels"] = map[string]any{"team": "t"}
		case 6:
			data["pad"] = padding()
		}
		f.apply(name, map[string]any{"data": data, "metadata": metadata})
	}
}

func (f *folding) apply(name string, change map[string]any) {
	f.t.Helper()
	text, err := json.Marshal(change)
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = f.maps.Patch(f.t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = f.maps.Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"n": "1", "pad": padding()},
		}}, metav1.CreateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// padding makes an object as large as a Pod.
func padding() string { return strings.Repeat("padding ", 1500) }

// end leaves objects that all sinks take, waits until they have them, and stops the exporter.
func (f *folding) end() {
	f.t.Helper()
	for i := range 12 {
		f.apply(fmt.Sprint("map-", i), map[string]any{"data": map[string]any{"n": "7000", "pad": "small"}})
		f.apply(fmt.Sprint("map-", i), map[string]any{"data": map[string]any{"n": "7003"}})
	}
	f.apply("the-end", map[string]any{})
	ctx, cancel := context.WithTimeout(f.t.Context(), limit)
	defer cancel()
	js := f.jetStream()
	for _, stream := range []string{"whole", "file", "narrow", "spooled", "merged", "lake"} {
		for !f.has(js, stream, "the-end") {
			select {
			case <-f.x.process.Exited:
				f.t.Fatalf("the exporter ended: %v\n%s", f.x.process.Ended(), f.x.log())
			case <-ctx.Done():
				f.t.Fatalf("%s does not end\n%s", stream, f.x.log())
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	f.x.stop(f.t)
}

// has says whether the stream tells of the object.
func (f *folding) has(js nats.JetStreamContext, stream, name string) bool {
	if stream == "lake" {
		return slices.ContainsFunc(f.records(), func(r kafka.Record) bool { return bytes.Contains(r.Value, []byte(`"name":"`+name+`"`)) })
	}
	if stream != "spooled" && stream != "merged" {
		text, err := os.ReadFile(f.path(stream))
		return err == nil && bytes.Contains(text, []byte(`"name":"`+name+`"`))
	}
	_, err := js.GetLastMsg(stream, stream+"."+name)
	return err == nil
}

// records are those of the topic, but for tombstones.
func (f *folding) records() []kafka.Record {
	f.t.Helper()
	all := f.kafka.ConsumeFast(f.t, "lake", kafka.JudgeOptions{ReadCommitted: true})
	return slices.DeleteFunc(all, func(r kafka.Record) bool { return r.Value == nil })
}

// downloadTopic writes the topic's events as lines, and holds each message against the schemas.
func (f *folding) downloadTopic(v *validate.Validator) {
	f.t.Helper()
	var lines bytes.Buffer
	for _, r := range f.records() {
		of := validate.Message{Format: "cloudevents", Headers: map[string]string{}, Value: r.Value}
		for _, h := range r.Headers {
			of.Headers[h.Key] = string(h.Value)
		}
		check(f.t, v, of)
		lines.Write(append(r.Value, '\n'))
	}
	if err := os.WriteFile(f.path("lake"), lines.Bytes(), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folding) path(stream string) string { return filepath.Join(f.x.dir, stream+".ndjson") }

func (f *folding) jetStream() nats.JetStreamContext {
	f.t.Helper()
	conn, err := nats.Connect(f.broker.URL(), nats.Timeout(limit))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	if err != nil {
		f.t.Fatal(err)
	}
	return js
}

// download writes the stream's events, of either mode, as lines, and holds each message against the schemas.
func (f *folding) download(v *validate.Validator, stream string) {
	f.t.Helper()
	var lines bytes.Buffer
	for _, m := range messagesOf(f.t, f.broker.URL(), stream) {
		kind := "cloudevents"
		text := m.Data
		if m.Header.Get("ce-type") != "" {
			kind, text = "cloudevents-binary", structured(f.t, m)
		}
		of := validate.Message{Format: kind, NATS: true, Headers: map[string]string{}, Value: m.Data}
		for name, values := range m.Header {
			of.Headers[name] = values[0]
		}
		check(f.t, v, of)
		lines.Write(append(text, '\n'))
	}
	if err := os.WriteFile(f.path(stream), lines.Bytes(), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// structured is an event in binary mode as one in structured mode.
func structured(t *testing.T, m *nats.RawStreamMsg) []byte {
	t.Helper()
	event := map[string]any{}
	for name, values := range m.Header {
		if attribute, is := strings.CutPrefix(name, "ce-"); is {
			value, err := url.PathUnescape(values[0])
			if err != nil {
				t.Fatal(err)
			}
			event[attribute] = value
		}
	}
	if len(m.Data) > 0 {
		event["data"] = json.RawMessage(m.Data)
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// folded is what the script says of a stream.
type folded struct {
	Patches, Objects, Compared, Gaps, Trimmed int
	Held                                      map[string]map[string]any
}

// judge lets Python fold the streams, and compares what is left with the cluster.
func (f *folding) judge(fold *exec.Cmd) {
	f.t.Helper()
	v, err := validate.NewClosed()
	if err != nil {
		f.t.Fatal(err)
	}
	f.download(v, "spooled")
	f.download(v, "merged")
	f.downloadTopic(v)
	var out, stderr bytes.Buffer
	streams := []string{"file", "narrow", "spooled", "merged", "lake"}
	for _, stream := range append([]string{"whole"}, streams...) {
		fold.Args = append(fold.Args, f.path(stream))
	}
	fold.Stdout, fold.Stderr = &out, &stderr
	if err := child.Run(fold); err != nil {
		f.t.Fatalf("%v: %s", err, tail(stderr.String()))
	}
	var all map[string]folded
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		f.t.Fatal(err)
	}
	want := f.list()
	for _, stream := range streams {
		f.compare(stream, all[f.path(stream)], want)
	}
	if all[f.path("merged")].Trimmed == 0 {
		f.t.Error("nothing was cut to fit")
	}
}

func (f *folding) compare(stream string, got folded, want map[string]map[string]any) {
	f.t.Helper()
	f.t.Logf("%s: %d patches, %d whole objects, %d states compared, %d gaps, %d cut", stream, got.Patches, got.Objects, got.Compared, got.Gaps, got.Trimmed)
	// A slow machine merges more. A sink may have versions that the sink of whole objects was killed before it saw:
	// those are not compared.
	if got.Patches < 30 || got.Compared < 100 || got.Gaps == 0 {
		f.t.Errorf("%s has too little of what is tested", stream)
	}
	if len(got.Held) != len(want) {
		f.t.Errorf("%s has %d objects in the end, and the cluster %d", stream, len(got.Held), len(want))
	}
	for name, object := range want {
		held := got.Held[name]
		if stream == "narrow" {
			object = maps.Clone(object)
			data := maps.Clone(object["data"].(map[string]any))
			delete(data, "pad")
			object["data"] = data
		}
		if !reflect.DeepEqual(held, object) {
			f.t.Errorf("%s: %s is folded to\n%v\nand is\n%v", stream, name, held, object)
		}
	}
}

// list is what the cluster has, by name.
func (f *folding) list() map[string]map[string]any {
	f.t.Helper()
	found, err := f.maps.List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, item := range found.Items {
		item.SetManagedFields(nil)
		text, err := item.MarshalJSON()
		if err != nil {
			f.t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			f.t.Fatal(err)
		}
		all[item.GetName()] = object
	}
	return all
}
