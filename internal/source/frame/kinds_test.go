package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/test/objects"
)

// alphabetical brings the keys into the order of custom resources.
func alphabetical(t *testing.T, text string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return string(must(json.Marshal(v)))
}

// TestEveryKind takes every kind there is through a watch and a list, in the built-in and in the alphabetical order.
func TestEveryKind(t *testing.T) {
	kinds := must(objects.Kinds())
	for _, text := range kinds {
		object := strings.Replace(string(text), `"annotations":{`,
			`"annotations":{"`+lastApplied+`":"{\"metadata\":{\"y\":\"{\\\"z\\\":\\\"\\\\\\\"}\"}}\n",`, 1)
		testKind(t, object)
		testKind(t, alphabetical(t, object))
	}
	if len(kinds) < 100 {
		t.Errorf("only %d kinds", len(kinds))
	}
}

func testKind(t *testing.T, object string) {
	t.Helper()
	var kind metav1.TypeMeta
	if err := json.Unmarshal([]byte(object), &kind); err != nil {
		t.Fatal(err)
	}
	line := bytes.TrimSpace([]byte(watchLine(Modified, object)))
	bare := strings.Replace(object, fmt.Sprintf(`"kind":%q,"apiVersion":%q,"metadata"`, kind.Kind, kind.APIVersion), `"metadata"`, 1)
	page := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[%s,%s]}`, kind.Kind+"List", kind.APIVersion, bare, bare)
	for _, opts := range cutEachAlone {
		opts.Kind, opts.APIVersion = kind.Kind, kind.APIVersion
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
