package openapi

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/transform"
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
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		".spec": true, ".spec.replicas": true, ".spec.again.spec.replicas": true,
		".spec.replica": false, ".status": false, ".spec.replicas.deeper": false, ".spec.again.spec.replica": false,
		".metadata.labels['a.b/c']": true, ".metadata.labels.*": true, ".metadata.labels.a.b": false, ".metadata.label": false,
		".spec.parts[*].name": true, ".spec.parts[0].name": true, ".spec.parts.name": false, ".spec.parts[*].nam": false,
		".spec.raw.x.y": true, ".spec.free.b": true, ".spec.anything.x": true, ".spec.closed.x": false, ".spec.port": true, ".spec.port.x": false,
		".spec.*[*].name": true, ".*.name": true, ".metadata.*.x.y": false,
	} {
		steps, err := transform.Steps(path)
		if err != nil {
			t.Fatal(err)
		}
		if has, known := d.Has("g", "v1", "Thing", steps); !known || has != want {
			t.Errorf("%s: has %t, known %t, want %t", path, has, known, want)
		}
	}
	if has, known := d.Has("g", "v2", "Thing", nil); has || known {
		t.Errorf("another version: has %t, known %t", has, known)
	}
	if _, err := Parse([]byte("<html>")); err == nil {
		t.Error("a page is taken for a document")
	}
}
