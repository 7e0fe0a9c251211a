package filter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/test/objects"
)

// outcome is all that an evaluation tells.
type outcome struct {
	value, err string
	cost       uint64
}

// plainly is the obvious way: the objects are decoded as a whole.
func plainly(f *Filter, rec *change.Record) (outcome, bool) {
	var object any
	if err := json.Unmarshal(rec.Object, &object); err != nil {
		return outcome{}, false
	}
	return outcomeOf(f, map[string]any{"object": object, "op": rec.Op.String(), "oldObject": func() any {
		if rec.Before == nil {
			return types.NullValue
		}
		var object any
		if err := json.Unmarshal(rec.Before, &object); err != nil {
			return types.NewErr("%s: %v", unreadable, err)
		}
		return object
	}}), true
}

// outcomeOf has an error as it is told: CEL's own text may name the type in Go of what it quotes.
func outcomeOf(f *Filter, seen any) outcome {
	var o outcome
	value, details, err := f.program.Eval(seen)
	if err != nil {
		o.err = withoutValues(err, f.expression).Error()
	} else {
		o.value = fmt.Sprint(value.Type(), value.Value())
	}
	if details != nil && details.ActualCost() != nil {
		o.cost = *details.ActualCost()
	}
	return o
}

func proven(object []byte) *scan.Proof {
	var proof scan.Proof
	proof.Prove(object, "")
	return &proof
}

func ask(f *Filter, rec *change.Record) (bool, error) { return f.Passes(rec, proven(rec.Object)) }

// expressions select, test, index, compare, convert, count and walk.
func expressions() []string {
	return []string{
		`object.status.phase == "Running"`,
		`object.a == "a"`,
		`"a" != object.a`,
		`object.a != "a" && object.metadata.name == "s" || object.a.b.c == ""`,
		`object.a == "a" || object.b == "a" || object.zz.zz == "a"`,
		`object[""] == "a" || object.a == "\ufffd"`,
		`has(object.metadata.labels.app) && object.metadata.name.startsWith("s")`,
		`has(object.status.phase)`,
		`object.?status.?phase.orValue("") == "Running"`,
		`object[?"a"][?"b"].hasValue()`,
		`optional.ofNonZeroValue(object.a).hasValue()`,
		`object["env"] == object.env`,
		`object.a == oldObject.a`,
		`object == oldObject`,
		`object.metadata == object.metadata`,
		`oldObject == null || object.data != oldObject.data`,
		`object.a.b.c.a == 1 || object.a.b > 2.5`,
		`object.a[0] == object.b[1].a`,
		`object.a[object.b] == 1`,
		`object[1] == 1 || object[1.0] == 2 || object[true] == 3`,
		`object.a.all(x, x == x)`,
		`object.a.exists(x, x == "a" || x == object.a)`,
		`object.spec.containers.exists(c, c.image == "va\"lue\\}")`,
		`object.metadata.all(k, has(object.metadata.labels) || k == "labels")`,
		`size(object) > size(object.a)`,
		`size(object.metadata) == 2`,
		`type(object) == map && type(object.a) == type(object.b)`,
		`"a" in object || "env" in object.a || 1 in object`,
		`object.a in [1, "a", {"a": 1}, null]`,
		`[object.a, object.b].exists(x, x == null)`,
		`{"x": object.a}.x == object.a`,
		`int(object.a) == 1`,
		`string(object.a) == "1"`,
		`bool(object)`,
		`dyn(object).a + dyn(object).b == 3`,
		`object.a ? true : object.b`,
		`object`,
		`object[""] == "" || object["\ufffd"] == "a" || object["\n\n\ufffd"] == 1 || object["{\"a\":"] == 1 || object["é"] == 1 || object["a\\"] == object["a\""]`,
		`op == "updated" || object.a`,
		`sets.contains([object.a], [object.b])`,
		`"%s".format([object.a]) == ""`,
		`object.a.map(x, x.a).size() > 1`,
		`object.a.filter(k, k == "a") == ["a"]`,
		`[1,2,3,4,5,6,7,8,9].all(i, object.a == object.a && object.metadata.name == object.metadata.name)`,
	}
}

func filters(t testing.TB) []*Filter {
	t.Helper()
	var all []*Filter
	for _, expression := range expressions() {
		env, ast, err := compile(expression, true)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
		must(t, err)
		all = append(all, &Filter{program, expression})
	}
	return all
}

// compare holds every expression against the obvious way.
func compare(t *testing.T, all []*Filter, object, old []byte) {
	t.Helper()
	rec := &change.Record{Op: change.Updated, Object: object, Before: old}
	for _, f := range all {
		want, readable := plainly(f, rec)
		value, err := read(object, proven(object))
		if readable != (err == nil) {
			t.Fatalf("%.500q is read with %v, want readable %t", object, err, readable)
		}
		if !readable {
			return
		}
		got := outcomeOf(f, seen(rec, value))
		if says := answer(f, rec); says != "" && says != want.value+want.err {
			t.Fatalf("%s of %.500q, before %.500q: the filter says %s, want %+v", f.expression, object, old, says, want)
		}
		// The order of a map is not defined, nor is that of what fails first in it.
		if got != want && !strings.Contains(f.expression, "all(k") {
			t.Fatalf("%s of %.500q, before %.500q:\n%+v, want\n%+v", f.expression, object, old, got, want)
		}
	}
}

// answer is what the filter says in the words of an outcome, "" where that is none of true or false.
func answer(f *Filter, rec *change.Record) string {
	passes, err := ask(f, rec)
	switch {
	case err == nil:
		return fmt.Sprint("bool ", passes)
	case strings.Contains(f.expression, "all(k") || strings.Contains(err.Error(), "neither true nor false"):
		return ""
	}
	return strings.TrimPrefix(err.Error(), "evaluate filter: ")
}

func TestEveryKindIsSeenAsItIs(t *testing.T) {
	kinds, err := objects.Kinds()
	if err != nil || len(kinds) < 100 {
		t.Fatalf("%d kinds, %v", len(kinds), err)
	}
	all := filters(t)
	for i, object := range kinds {
		compare(t, all, object, kinds[(i+i%2)%len(kinds)])
	}
}

func odd() []string {
	deep := strings.Repeat(`{"a":`, 9_999) + "1" + strings.Repeat("}", 9_999)
	return []string{
		`{}`, ` { "a" : 1 } `, `{"a":1,"a":"a"}`, `{"a":{"b":1},"a":{"c":2}}`, `{"\u0061":{"b":{"c":{"a":1}}}}`, `{"a":[{"a":1},2],"b":[3,{"a":{"a":1}}]}`,
		`{"status":{"phase":"Failed"},"st\u0061tus":{"ph\u0061se":"Running"}}`, `{"a":1e400}`, `{"x":[1e400]}`, `{"x":-1e-400,"a":-0}`,
		`{"a":9223372036854775808,"b":1.0}`, `{"a":1}x`, `{"a":1,}`, `[1]`, `"a"`, `null`, `7`, ``, "{\"\xff\":\"a\"}", "{\"\\n\\n\xff\":1,\"a\":1}", "{\"\ufffd\":\"\xff\"}",
		`{"a":null,"b":{},"metadata":{"labels":null}}`, `{"` + strings.Repeat("{", 5000) + `":1,"a":1}`, `{"a":` + deep + `}`, deep,
	}
}

func TestOddObjectsAreSeenAsTheyAre(t *testing.T) {
	all := filters(t)
	for _, object := range odd() {
		compare(t, all, []byte(object), nil)
		compare(t, all, []byte(`{"a":1,"data":{"x":1}}`), []byte(object))
	}
}

// FuzzFilter has objects as they come, and as their bytes choose among shapes.
func FuzzFilter(f *testing.F) {
	for _, object := range odd() {
		if len(object) < 1000 {
			f.Add([]byte(object), []byte(`{"a":1}`))
		}
	}
	all := filters(f)
	f.Fuzz(func(t *testing.T, object, old []byte) {
		compare(t, all, object, old)
		compare(t, all, objects.Shaped(object), objects.Shaped(old))
		compare(t, all, objects.Shaped(object), nil)
	})
}

// TestI9NoSpellingHidesAFieldFromAFilter writes one object in all the ways that mean the same.
func TestI9NoSpellingHidesAFieldFromAFilter(t *testing.T) {
	f, err := New(`object.status.phase == "Failed"`, false)
	must(t, err)
	for how, object := range map[string]string{
		"escapes in keys":      `{"\u0073t\u0061tus":{"ph\u0061se":"Failed"}}`,
		"an escaped value":     `{"status":{"phase":"\u0046ailed"}}`,
		"duplicate keys":       `{"status":{"phase":"Running"},"status":{"phase":"Running","phase":"Failed"}}`,
		"an escaped double":    `{"status":{"phase":"Running","ph\u0061se":"Failed"}}`,
		"order":                `{"status":{"z":{"phase":"Running"},"phase":"Failed"},"metadata":{"status":{"phase":"Running"}}}`,
		"white space":          " {\n\"status\" :\t{ \"phase\"\r: \"Failed\" } } ",
		"braces in keys":       `{"{\"status\":{\"phase\":\"Running\"}":1,"}}":{"]":[]},"status":{"phase":"Failed"}}`,
		"long keys":            `{"` + strings.Repeat("status", 1000) + `":1,"status":{"` + strings.Repeat("p", 5000) + `":1,"phase":"Failed"}}`,
		"nesting":              `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `,"status":{"phase":"Failed"}}`,
		"text that is no JSON": "{\"a\":\"\xff\\\"\\\\\",\"status\":{\"phase\":\"Failed\"}}",
	} {
		if passes, err := ask(f, &change.Record{Op: change.Updated, Object: []byte(object)}); err != nil || !passes {
			t.Errorf("%s: %t, %v", how, passes, err)
		}
	}
	if _, err := ask(f, &change.Record{Op: change.Updated, Object: []byte(`{"status":{"phase":"Running"},"a":nul}`)}); err == nil {
		t.Error("what is no JSON behind the field is taken for JSON")
	}
}

// TestI6LookingUpEveryKeyOfAListIsLinear asks for as many keys as there are, of an object of many.
func TestI6LookingUpEveryKeyOfAListIsLinear(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"k0":0`)
	const keys = 2000
	for i := 1; i < keys; i++ {
		fmt.Fprintf(&text, `,"k%d":%d`, i, i)
	}
	text.WriteString("}")
	proof := proven([]byte(text.String()))
	p := &part{proof: proof}
	for i := range keys {
		if v, found := p.Find(types.String(fmt.Sprintf("k%d", i))); !found || v != types.Int(i) {
			t.Fatalf("k%d is %v", i, v)
		}
	}
	if p.steps > 50*keys {
		t.Errorf("%d steps for %d keys", p.steps, keys)
	}
}

func TestUnreadableObjectsAreNamedWithoutTheirText(t *testing.T) {
	f, err := New(`op == "updated"`, false)
	must(t, err)
	for _, object := range []string{`{"a":s3cr3t}`, `{"a":1e400}`, `{"a":"s3cr3t"`} {
		passes, err := ask(f, &change.Record{Op: change.Updated, Object: []byte(object)})
		if passes || err == nil || errors.Unwrap(err) != nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %t, %v", object, passes, err)
		}
	}
}
