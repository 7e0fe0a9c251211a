package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

const unbounded = 1 << 30

// check folds the patch onto before and wants after.
func check(t *testing.T, before, after string) string {
	t.Helper()
	var d Delta
	patch, ok := d.Patch(nil, []byte(before), []byte(after), unbounded)
	if !ok {
		return ""
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	got, err := decoded.Apply([]byte(before))
	if err != nil {
		t.Fatalf("%.2000s onto %.2000s: %v", patch, before, err)
	}
	if !equal(t, got, []byte(after)) {
		t.Fatalf("%.2000s onto %.2000s is\n%.2000s\nwant\n%.2000s", patch, before, got, after)
	}
	return string(patch)
}

// equal compares two values; numbers by their digits.
func equal(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for text, into := range map[*[]byte]*any{&a: &x, &b: &y} {
		decoder := json.NewDecoder(bytes.NewReader(*text))
		decoder.UseNumber()
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%v in %.200s", err, *text)
		}
	}
	return reflect.DeepEqual(x, y)
}

func TestPatchFoldsToTheObject(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{`{"a":1}`, `{"a":1}`, `[]`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, `[{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"add","path":"/c","value":4}]`},
		{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":null}}}`, `[{"op":"replace","path":"/a/b/c","value":null}]`},
		{`{"a/b":1,"~":1,"":1,"{}":1}`, `{"a/b":2,"~":2,"":2,"{}":2}`, `[{"op":"replace","path":"/a~1b","value":2},{"op":"replace","path":"/~0","value":2},{"op":"replace","path":"/","value":2},{"op":"replace","path":"/{}","value":2}]`},
		{`{"\"\\\u0001é\/":1}`, `{"\"\\\u0001é\/":2}`, `[{"op":"replace","path":"/\"\\\u0001é~1","value":2}]`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, `[{"op":"replace","path":"/n","value":9007199254740992}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[1,3,4]}`, `[{"op":"remove","path":"/l/1"}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,2,9,8,3]}`, `[{"op":"add","path":"/l/2","value":9},{"op":"add","path":"/l/3","value":8}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[5]}`, `[{"op":"replace","path":"/l/0","value":5},{"op":"remove","path":"/l/3"},{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`},
		{`{"l":[{"t":"a","s":1},{"t":"b","s":1}]}`, `{"l":[{"t":"a","s":1},{"t":"b","s":2}]}`, `[{"op":"replace","path":"/l/1/s","value":2}]`},
		{`{"a":[]}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{`{"o":{"a":1,"a":2}}`, `{"o":{"a":3,"a":2}}`, `[{"op":"replace","path":"/o","value":{"a":3,"a":2}}]`},
		{`{"o":{"\ud800":1}}`, `{"o":{"\ud801":1}}`, `[{"op":"replace","path":"/o","value":{"\ud801":1}}]`},
		{`{"a":1,"a":2}`, `{"a":3}`, ``},
		{`[1]`, `[2]`, ``},
		{`{"a":"` + "\xff" + `"}`, `{"a":1}`, ``},
		{`{"a":1`, `{"a":1}`, ``},
	} {
		if got := check(t, c.before, c.after); got != c.want {
			t.Errorf("%s to %s: got\n%s\nwant\n%s", c.before, c.after, got, c.want)
		}
	}
}

func TestChangedNamesWhatDiffers(t *testing.T) {
	var d Delta
	for _, c := range []struct{ before, after, want string }{
		{`{"metadata":{"resourceVersion":"1","managedFields":[{"time":1}]}}`, `{"metadata":{"resourceVersion":"2","managedFields":[{"time":2},{}]}}`, `[]`},
		{`{"metadata":{"managedFieldsx":1},"resourceVersion":1}`, `{"metadata":{"managedFieldsx":2},"resourceVersion":2}`, `["/metadata/managedFieldsx","/resourceVersion"]`},
		{`{"a/b":{"~\"":1}}`, `{"a/b":{"~\"":2}}`, `["/a~1b/~0\""]`},
		{`{"l":[1,2,3]}`, `{"l":[1]}`, `["/l/2","/l/1"]`},
	} {
		got, cut, ok := d.Changed(nil, []byte(c.before), []byte(c.after))
		if string(got) != c.want || cut || !ok {
			t.Errorf("%s to %s: %s, cut %t, %t; want %s", c.before, c.after, got, cut, ok, c.want)
		}
	}
	if list, _, ok := d.Changed([]byte("x"), []byte(`7`), []byte(`{}`)); ok || string(list) != "x" {
		t.Errorf("no object has %s", list)
	}
}

// hostile are pairs that somebody has made to cost much.
func hostile() map[string][2]string {
	keys, list, long := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%s,`, (i*7919)%n, value)
		}
		return `{` + strings.TrimSuffix(b.String(), ",") + `}`
	}, func(n int, value string) string {
		return `{"l":[` + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + `]}`
	}, strings.Repeat("/~{}\\\"\\u0001", 1000)
	deep := func(value string) string { return strings.Repeat(`{"a":[`, 4900) + value + strings.Repeat(`]}`, 4900) }
	payload := strings.Repeat("x", 1<<20)
	nested := func(value string) string {
		text := value
		for range 60 {
			text = `{"` + long + `":` + text + `}`
		}
		return text
	}
	return map[string][2]string{
		"100,000 keys":        {keys(100_000, "1"), keys(100_000, "2")},
		"keys in other order": {keys(20_000, "1"), keys(19_999, "1")},
		"200,000 elements":    {list(200_000, "1"), list(199_999, "2")},
		"elements that shift": {list(100_000, `{"a":1}`), `{"l":[7,` + strings.TrimPrefix(list(100_000, `{"a":1}`), `{"l":[`)},
		"deep":                {deep("1"), deep("2")},
		"deep and long":       {deep(`"` + payload + `1"`), deep(`"` + payload + `2"`)},
		"long keys, nested":   {nested("1"), nested("2")},
		"many in long keys":   {nested(keys(20_000, "1")), nested(keys(20_000, "2"))},
	}
}

// TestI6WhateverSomebodyWritesIsBounded in size and time.
func TestI6WhateverSomebodyWritesIsBounded(t *testing.T) {
	for name, pair := range hostile() {
		var d Delta
		before, after := []byte(pair[0]), []byte(pair[1])
		if !json.Valid(before) || !json.Valid(after) {
			t.Fatalf("%s is no JSON", name)
		}
		began := time.Now()
		patch, ok := d.Patch(nil, before, after, len(after))
		list, _, changed := d.Changed(nil, before, after)
		took := time.Since(began)
		if len(patch) > len(after)+256 || !changed || len(list) > mostPointerBytes+2 {
			t.Errorf("%s: a patch of %d bytes for %d, and %d of pointers", name, len(patch), len(after), len(list))
		}
		if took > 20*time.Second { // of a busy machine; it takes milliseconds
			t.Errorf("%s took %s", name, took)
		}
		var pointers []string
		if err := json.Unmarshal(list, &pointers); err != nil || len(pointers) > mostPointers {
			t.Errorf("%s: %d pointers, %v", name, len(pointers), err)
		}
		t.Logf("%s: %t, %d bytes of patch, %d of pointers, %s", name, ok, len(patch), len(list), took)
	}
}

// TestCutSaysThatThereIsMore: a pointer that is too long is left out, and shorter ones after it are not.
func TestCutSaysThatThereIsMore(t *testing.T) {
	var d Delta
	long := strings.Repeat("k", 5000)
	list, cut, _ := d.Changed(nil, []byte(`{"a":1,"`+long+`":1,"b":1}`), []byte(`{"a":2,"`+long+`":2,"b":2}`))
	if string(list) != `["/a","/b"]` || !cut {
		t.Errorf("%s, cut %t", list, cut)
	}
}

// FuzzPatchFolds: whatever two objects are, their patch makes the one of the other, and its pointers name what it
// touches.
func FuzzPatchFolds(f *testing.F) {
	f.Add(`{"a":[1,2,{"b":"c"}],"d":{"e":null}}`, `{"a":[2,{"b":"d"},5],"d":{"e":{}}}`)
	f.Add(`{"a/b":1,"~":[[]]}`, `{"~":[[1]],"":0}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		if !json.Valid([]byte(before)) || !json.Valid([]byte(after)) || repeats(before) || repeats(after) {
			return
		}
		check(t, before, after)
		var d Delta
		list, _, ok := d.Changed(nil, []byte(before), []byte(after))
		if ok && !json.Valid(list) {
			t.Fatalf("%q", list)
		}
	})
}

// repeats says whether a key stands twice, of which the oracle takes another one.
func repeats(text string) bool {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var any any
	if decoder.Decode(&any) != nil {
		return true
	}
	encoded, err := json.Marshal(any)
	var compact bytes.Buffer
	if err != nil || json.Compact(&compact, []byte(text)) != nil {
		return true
	}
	return strings.Count(string(encoded), ":") != strings.Count(compact.String(), ":")
}

func BenchmarkPodStatus(b *testing.B) {
	var pod strings.Builder
	pod.WriteString(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"},"spec":{`)
	for i := range 150 {
		fmt.Fprintf(&pod, `"field%d":{"name":"value of a field %d","list":[1,2,3,"x"]},`, i, i)
	}
	pod.WriteString(`"z":1},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-21T06:51:37Z"}]}}`)
	before := pod.String()
	after := strings.Replace(strings.Replace(before, "True", "False", 1), `"resourceVersion":"1"`, `"resourceVersion":"2"`, 1)
	var d Delta
	var patch []byte
	b.SetBytes(int64(len(after)))
	for b.Loop() {
		patch, _ = d.Patch(patch[:0], []byte(before), []byte(after), len(after))
	}
	b.ReportMetric(float64(len(after))/float64(len(patch)), "times-smaller")
}
