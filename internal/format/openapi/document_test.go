package openapi

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// document has what those of API servers have, in small.
const document = `{"components":{"schemas":{
 "Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Thing"}],"properties":{
  "metadata":{"default":{},"allOf":[{"$ref":"#/components/schemas/Meta"}]},
  "spec":{"type":"object","properties":{
    "replicas":{"type":"integer"},
    "port":{"oneOf":[{"type":"integer"},{"type":"string"}]},
    "raw":{"type":"object"},
    "free":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true},
    "closed":{"type":"object","additionalProperties":false},
    "anything":{"type":"object","additionalProperties":true},
    "again":{"$ref":"#/components/schemas/Thing"},
    "parts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}}},
 "Meta":{"type":"object","properties":{"name":{"type":"string"},
   "labels":{"type":"object","additionalProperties":{"type":"string","default":""}}}}}}}`

func TestPathsThatAnObjectCanHave(t *testing.T) {
	d, err := Read(strings.NewReader(document))
	must(t, err)
	for path, want := range map[string]bool{
		".spec": true, ".spec.replicas": true, ".spec.again.spec.replicas": true,
		".spec.replica": false, ".status": false, ".spec.replicas.deeper": false, ".spec.again.spec.replica": false,
		".metadata.labels['a.b/c']": true, ".metadata.labels.*": true, ".metadata.labels.a.b": false, ".metadata.label": false,
		".spec.parts[*].name": true, ".spec.parts[0].name": true, ".spec.parts.name": false, ".spec.parts[*].nam": false,
		".spec.raw.x.y": true, ".spec.free.b": true, ".spec.anything.x": true, ".spec.closed.x": false, ".spec.port": true, ".spec.port.x": false,
		".spec.*[*].name": true, ".*.name": true, ".metadata.*.x.y": false,
	} {
		steps, err := transform.Steps(path)
		must(t, err)
		if has, known := d.Has("g", "v1", "Thing", steps); !known || has != want {
			t.Errorf("%s: has %t, known %t, want %t", path, has, known, want)
		}
	}
	if has, known := d.Has("g", "v2", "Thing", nil); has || known {
		t.Errorf("another version: has %t, known %t", has, known)
	}
	if _, err := Read(strings.NewReader("<html>")); err == nil {
		t.Error("a page is taken for a document")
	}
}

// definitions is a document of as many kinds, each of which has a schema of about a size.
func definitions(kinds, size int) []byte {
	const field = `"f":{"description":"what it is for, in some words","type":"string","nullable":true},`
	fields := strings.Repeat(field, size/len(field))
	var b bytes.Buffer
	b.WriteString(`{"openapi":"3.0.0","paths":{`)
	for i := range kinds {
		fmt.Fprintf(&b, `"/apis/g/v1/k%d":{"get":{"description":%q}},`, i, strings.Repeat("x", size/4))
	}
	b.WriteString(`"/":null},"components":{"schemas":{`)
	for i := range kinds {
		fmt.Fprintf(&b, `"g.v1.K%d":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K%d"}],"properties":{"spec":{"type":"object","properties":{`, i, i)
		b.WriteString(fields + `"last":{"type":"integer"}}}}},`)
	}
	b.WriteString(`"g.v1.Last":{"type":"object"}}}}`)
	return b.Bytes()
}

// TestI6ALargeDocumentIsReadInParts: it is kept as text, of which one kind's is decoded.
func TestI6ALargeDocumentIsReadInParts(t *testing.T) {
	text := definitions(100, 100<<10)
	before := heap()
	d, err := Read(bytes.NewReader(text))
	if err != nil || d.LeftOut != 0 {
		t.Fatalf("%d schemas are left out: %v", d.LeftOut, err)
	}
	for _, kind := range []string{"K0", "K50", "K99"} {
		if of := d.Type("g", "v1", kind, Options{}); of == nil || len(of.Fields) != 1 {
			t.Errorf("%s has type %v", kind, of)
		}
	}
	if took := heap() - before; took > int64(len(text))*5/4 {
		t.Errorf("a document of %d MiB takes %d MiB", len(text)>>20, took>>20)
	}
	runtime.KeepAlive(d)
	runtime.KeepAlive(text)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestI6WhatIsTooLargeOfADocumentIsLeftOut, and the rest is there.
func TestI6WhatIsTooLargeOfADocumentIsLeftOut(t *testing.T) {
	for _, c := range []struct{ kinds, size, left int }{{1, mostOne + 1<<20, 1}, {36, 1 << 20, 4}} {
		d, err := Read(bytes.NewReader(definitions(c.kinds, c.size)))
		if err != nil || d.LeftOut < c.left-3 || d.LeftOut > c.left+3 || d.texts["g.v1.Last"] == nil {
			t.Errorf("%d kinds of %d bytes: %d are left out, want about %d: %v", c.kinds, c.size, d.LeftOut, c.left, err)
		}
		if _, known := d.Has("g", "v1", fmt.Sprint("K", c.kinds-1), nil); known {
			t.Error("what is left out is known")
		}
	}
	if _, err := Read(bytes.NewReader(definitions(1, 3*mostOne))); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("one schema of %d MiB: %v", 3*mostOne>>20, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
