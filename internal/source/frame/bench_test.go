package frame

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

//go:embed testdata/pod.json
var podTemplate string

// pod is a pod of 12 KiB as an API server writes it, with a name of its own.
func pod(i int) string {
	return strings.NewReplacer(
		"__NAME__", fmt.Sprintf("web-7d4b9c6f5-%05d", i),
		"__UID__", fmt.Sprintf("1b7f1c1e-5a3e-4b8e-9d1a-%012d", i),
		"__RV__", fmt.Sprint(100000+i),
	).Replace(podTemplate)
}

func watchLine(t Type, object string) string {
	return `{"type":"` + string(t) + `","object":` + object + "}\n"
}

// loop repeats a stream for ever.
type loop struct {
	text []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.text[l.at:])
	l.at = (l.at + n) % len(l.text)
	return n, nil
}

func benchmarkFrames(b *testing.B, opts Options, lines ...string) {
	text := strings.Join(lines, "")
	r := NewReader(&loop{text: []byte(text)}, opts)
	b.SetBytes(int64(len(text) / len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := r.Next()
		if err != nil || f.Object.Name == "" {
			b.Fatal(f, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/frame")
}

func BenchmarkFrame(b *testing.B) {
	var lines []string
	for i := range 100 {
		lines = append(lines, watchLine(Modified, pod(i)))
	}
	b.Run("pod", func(b *testing.B) { benchmarkFrames(b, Options{}, lines...) })
	b.Run("pod-uncut", func(b *testing.B) {
		benchmarkFrames(b, Options{KeepManagedFields: true, KeepLastApplied: true}, lines...)
	})
	configMap := func(data string) string {
		text, _ := json.Marshal(data)
		return watchLine(Added, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"big","namespace":"a"},"data":{"x":`+string(text)+`}}`)
	}
	b.Run("configmap-1KiB", func(b *testing.B) { benchmarkFrames(b, Options{}, configMap(strings.Repeat("x", 1<<10))) })
	b.Run("configmap-1MiB", func(b *testing.B) { benchmarkFrames(b, Options{}, configMap(strings.Repeat("x", 1<<20))) })
}

// small is a pod of about 1.5 KiB as a list has it.
func small(i int) string {
	return fmt.Sprintf(`{"metadata":{"name":"web-%07d","namespace":"team-017","uid":"1b7f1c1e-5a3e-4b8e-9d1a-%012d","resourceVersion":"%d",`+
		`"creationTimestamp":"2026-11-20T23:59:45Z","labels":{"app":"web","pod-template-hash":"7d4b9c6f5","team":"payments"},`+
		`"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-20T23:59:45Z","fieldsType":"FieldsV1",`+
		`"fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{},"f:team":{}}},`+
		`"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{},"f:image":{},"f:name":{}}},"f:nodeName":{}}}}]},`+
		`"spec":{"nodeName":"node-017","containers":[{"name":"web","image":"registry.example.com/payments/web:1.2.3","env":[%s]}]},`+
		`"status":{"phase":"Running","hostIP":"10.0.0.17","podIP":"10.1.2.3"}}`, i, i, 100000+i,
		strings.Repeat(`{"name":"SETTING","value":"db.payments.svc.cluster.local:5432"},`, 8)+`{"name":"LAST","value":""}`)
}

// records is a page as it comes out of a TLS connection.
type records struct{ io.Reader }

func (r records) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 16<<10)]) }

func BenchmarkList(b *testing.B) {
	b.Run("pod", func(b *testing.B) {
		benchmarkList(b, func(i int) string { return strings.Replace(pod(i), `"kind":"Pod","apiVersion":"v1",`, "", 1) })
	})
	b.Run("small", func(b *testing.B) { benchmarkList(b, small) })
}

func benchmarkList(b *testing.B, object func(i int) string) {
	var items []string
	for i := range 500 {
		items = append(items, object(i))
	}
	page := []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + strings.Join(items, ",") + "]}")
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		_, err := ScanList(records{bytes.NewReader(page)}, Options{Kind: "Pod", APIVersion: "v1"}, func(Object) error { n++; return nil })
		if err != nil || n != len(items) {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/item")
}
