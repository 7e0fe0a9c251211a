package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubecdc/kubecdc/test/objects"
)

// builtin makes an object of a kind with all of its metadata, and with something in its other fields.
func builtin(t *testing.T, kind schema.GroupVersionKind) runtime.Object {
	t.Helper()
	o, err := scheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	objects.Fill(reflect.ValueOf(o).Elem(), 4)
	m, ok := o.(metav1.Object)
	if !ok {
		return nil
	}
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	yes := true
	m.SetName("system:node:té \"" + strings.ToLower(kind.Kind) + "\"")
	m.SetNamespace("ns-1")
	m.SetUID("1b7f1c1e-5a3e-4b8e-9d1a-0c2d3e4f5a6b")
	m.SetResourceVersion("123456")
	m.SetGenerateName("gen-")
	m.SetCreationTimestamp(now)
	m.SetDeletionTimestamp(&now)
	m.SetLabels(map[string]string{"app": "web", "name": "x", "uid": ""})
	m.SetAnnotations(map[string]string{
		"a": "<b>&\u2028\"\\\"", lastApplied: `{"metadata":{"name":"x","annotations":{"y":"{\"z\":\"\\\\\"}"}}}` + "\n", "z": "😀\x01\b",
	})
	m.SetOwnerReferences([]metav1.OwnerReference{{Kind: "X", Name: "y", UID: "z", Controller: &yes}})
	m.SetFinalizers([]string{"foregroundDeletion"})
	m.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: "Apply", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:name":{},"k:{\"uid\":\"a\\\\b\"}":{".":{}}}}`),
	}})
	o.GetObjectKind().SetGroupVersionKind(kind)
	return o
}

// marshal writes JSON as an API server does. Not every value that fill makes has a JSON form.
func marshal(o any) ([]byte, bool) {
	text, err := json.Marshal(o)
	return text, err == nil
}

// alphabetical brings the keys into the order of custom resources.
func alphabetical(t *testing.T, text []byte) []byte {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return must(json.Marshal(v))
}

// TestEveryKind takes every kind there is through a watch and a list, in the built-in and in the alphabetical order.
func TestEveryKind(t *testing.T) {
	kinds := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		o := builtin(t, kind)
		if o == nil {
			continue // lists and options
		}
		text, ok := marshal(o)
		if !ok {
			t.Errorf("%v has no JSON", kind)
			continue
		}
		kinds++
		for _, object := range [][]byte{text, alphabetical(t, text)} {
			testKind(t, kind, object)
		}
	}
	if kinds < 100 {
		t.Errorf("only %d kinds", kinds)
	}
	t.Logf("%d kinds", kinds)
}

func testKind(t *testing.T, kind schema.GroupVersionKind, object []byte) {
	t.Helper()
	version, name := kind.ToAPIVersionAndKind()
	s := scanner{}
	line := bytes.TrimSpace([]byte(watchLine(Modified, string(object))))
	if s.fastFrame(line) != Modified {
		t.Errorf("%v takes the slow path", kind)
	}
	bare := strings.NewReplacer(fmt.Sprintf(`"kind":%q,"apiVersion":%q,"metadata"`, name, version), `"metadata"`).Replace(string(object))
	page := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[%s,%s]}`, name+"List", version, bare, bare)
	for _, opts := range cutEachAlone {
		opts.Kind, opts.APIVersion = name, version
		if err := checkFrame(line, opts); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		if err := checkList([]byte(page), opts, whole); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		f := must(NewReader(bytes.NewReader(append(line, '\n')), opts).Next())
		_, items, err := scanList(page, opts)
		if err != nil || items[0] != string(f.Object.JSON) || items[1] != items[0] {
			t.Errorf("%v differs between watch and list, %v:\n%s\n%s", kind, err, f.Object.JSON, items)
		}
	}
}
