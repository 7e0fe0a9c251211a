package transform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/test/objects"
)

// rulesFor is one of many rules: those that the bits of n choose.
func rulesFor(n uint32) (rules Rules) {
	for i, path := range []string{".a", ".metadata.*", ".a[*].b", ".*.a", ".b[1]", ".spec.containers[*].env[0]", ".env[*].name", ".status"} {
		if n>>i&1 != 0 {
			rules.Drop = append(rules.Drop, path)
		}
	}
	for i, path := range []string{".data", ".metadata.labels", ".*.*.a", ".a.b", ".b", ".env[*].value", `['{"a":']`, ".a[0]"} {
		if n>>(8+i)&1 != 0 {
			rules.Redact = append(rules.Redact, path)
		}
	}
	for i, path := range []string{".a", ".spec.containers[*]", ".*.b", ".b[*].a", ".metadata.labels.app", ".env"} {
		if n>>(16+i)&1 != 0 {
			rules.Keep = append(rules.Keep, path)
		}
	}
	for i, pattern := range []string{"P*", "a", "*VA*", "?A*"} {
		if n>>(22+i)&1 != 0 {
			rules.Env = append(rules.Env, pattern)
		}
	}
	rules.Applied, rules.Managed = n>>26&1 != 0, n>>28&1 != 0
	return rules
}

// compare holds the rules against the obvious way. Tokens and their order must be the same; white space around them,
// which no API server writes, may be.
func compare(t *testing.T, n uint32, object []byte) {
	t.Helper()
	rules := rulesFor(n)
	made, err := New(rules, Key{Secret: []byte(key), Comparable: n>>27&1 != 0})
	must(t, err)
	if n>>31 != 0 {
		made = made.Again()
	}
	want, refused := newPlain(made, rules).apply(object)
	worker, proof := made.Worker(), proven(made, object)
	got, err := worker.Apply(object, proof, web())
	if (err != nil) != (refused != nil) || err != nil && got != nil {
		t.Fatalf("%+v: %.500q became %.500q, %v, want error %v", rules, object, got, err, refused)
	}
	if err != nil {
		return
	}
	first := got
	if got = compact(t, got); !bytes.Equal(got, compact(t, want)) {
		t.Fatalf("%+v: %.900q became\n%.900s, want\n%.900s", rules, object, got, want)
	}
	if len(object) < 10_000 { // and again, with what is left over from the last time
		again, err := worker.Apply(object, proof, web())
		appended, appendErr := made.Apply([]byte("before"), object, web())
		if err != nil || appendErr != nil || !bytes.Equal(again, first) || string(appended) != "before"+string(first) {
			t.Fatalf("%+v: %.900q became\n%.900s, then\n%.900s, %v, then\n%.900s, %v", rules, object, first, again, err, appended, appendErr)
		}
	}
}

func proven(t *Transform, object []byte) *scan.Proof {
	var proof scan.Proof
	proof.Prove(object, t.Watched())
	return &proof
}

func compact(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatalf("%.900q is no JSON: %v", text, err)
	}
	return out.Bytes()
}

// someRules has each rule alone, none and all of each kind, and a few together.
func someRules() []uint32 {
	all := []uint32{0, 0xff, 0xff00, 0x3f0000, 0x3c00000, 0x3ffffff, 0x3c0ff00, 0x81, 0x3c00202, 0x180_0f00, 1<<31 | 0x3c0ff00, 1<<31 | 0x7c0ff00, 0x7c0fffe, 0xfc0ffff}
	for i := range 29 {
		all = append(all, 1<<i)
	}
	return all
}

func odd() []string {
	deep := func(open, closing string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(closing, n)
	}
	return []string{
		"", "[]", "{}", ` { } `, ` { "a" : [ 1 , 2 ] , "b":{ }, "c":"\u0061\\\"" } `, `{"a":{"b":[{"c":1},2,"x"]},"env":[{"name":"PASS","value":"v"}]}`,
		`{"data":{"a":"b"},"l":[[1],[2]],"n":null}`, `{"a":1,"a":{"b":2},"\u0061":3}`, `{"data":"` + "\xff" + `"}`, "{\"a\xff\":1,\"data\":\"\\u00e9\xff\"}",
		`{"env":[{"name":"x","name":"PASS","value":"v","value":["w",{"x":null}]},{"value":"v"},[{"name":"P","value":1}],"P"]}`,
		`{"env":{"name":"P","value":{"env":{"value":"a","name":"u"}},"env":[{"value":"a","name":"p"}]}}`,
		`{"x":{"\u0065nv":[{"n\u0061me":"\u0050","v\u0061lue":"v"}]},"y":[[[{"env":[{"name":"P","value":"v","a":1}]}]]]}`,
		`{"x":{"env":[{"name":"P","value":"v"}]},"env":[{"name":"P","value":"v"}}`, `{"env":[{"name":"P","value":"v"`, `{"x":{"env":nul}}`, `{"env"}`, `{"x":{"a":"env","b":["env","\"env","env"],"a\"env":[{"name":"P","value":"v"}],"\\":{"env":[{"name":"P","value":"v"}]}}}`,
		`{"x":{"env" : [{"name":"P","value":"v"}],"y":{"env":{"env":"env","name":"P","value":"env"}}},"z":{"n":"\\\\u"}}`, `{"data":"`, `{"data":`, `{"data":{"`,
		`{"spec":{"containers":[{"env":[{"name":"P","value":"v"},{"name":"Q","value":"v"}],"a":1},{"a":{"b":1}}]}}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"a\":\"b<\u0026\"},\"a\":{\"b\":1},\"env\":[{\"name\":\"P\",\"value\":\"v\"}],\"x\":{\"env\":[{\"name\":\"P\",\"value\":\"v\"}]}}\n","x":"y"},"name":"n"},"env":[{"name":"P","value":"v"}]}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{\\\"a\\\":1}\"}}}"}}}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":{"a":["x",null]},"kubectl.kubernetes.io/last-applied-configuration":"x","b":1}}}`,
		`{"data":{"` + strings.Repeat("k", 300) + `":"a","b":{"` + strings.Repeat("l", 200) + `":{"` + strings.Repeat("m", 100) + `":["a",{"c":"d"}],"e":"f"},"g":"h"}},"x":{"` + strings.Repeat("k", 300) + `":[[{"env":[{"name":"P","value":"v"}]}],{"env":[{"name":"P","value":"v"}]}]}}`,
		`{"a":[{"x":1},{"b":[{"y":{"env":[{"name":"Q","value":{"z":[{"env":[{"name":"P","value":"v"}]},{"env":{"name":"P","value":"w"}}]}}]}},{"env":[{"name":"P","value":"v"}]}]}],"z":{"env":[{"name":"P","value":"v"}]}}`,
		`{"env":{"P":"v","a":{"b":["v",{"env":{"P":1,"Q":null}}]},"Q":[{"env":{"PA":["v"]}}],"env":{"\u0050":"v","name":"P","value":"v"}},"x":[{"env":[{"P":"v","env":{"P":"v"}}]}]}`,
		managed(`,"k:{}":{"v:1":2},"v:\"v\"":{},"\u0076:1":[1],"env":{"P":{"v:1":1,"k":1}},"a":[{"v:1":1,"b":1}]`),
		`{"metadata":{"managedFields":[{"fieldsV1":{"v:1":1},"time":{"v:1":1}},{"fieldsV1":"v:1"},[{"fieldsV1":{"v:1":1}}]],"managedFields":{"fieldsV1":{"v:1":1},"a":{"fieldsV1":{"v:1":1,"b":[{"k:":1}]}}}}}`,
		`{"data":{"a":"hmac-sha256:0123456789abcdef0123456789abcdef","b":"hmac-sha256:0123"}}`, `{"` + strings.Repeat("{", 5000) + `":1,"a":1,"{\"a\":":"x"}`,
		`{"a":` + deep("[", "]", 9_998) + `}`, deep(`{"a":`, "}", 9_999), deep(`{"env":`, "}", 9_999), deep(`{"x":[`, "]}", 5_000), deep(`{"env":[`, "]}", 5_001),
	}
}

func TestOddObjectsBecomeWhatTheObviousWayMakes(t *testing.T) {
	for _, object := range odd() {
		for _, n := range someRules() {
			compare(t, n, []byte(object))
		}
	}
}

func TestEveryKindBecomesWhatTheObviousWayMakes(t *testing.T) {
	kinds, err := objects.Kinds()
	if err != nil || len(kinds) < 100 {
		t.Fatalf("%d kinds, %v", len(kinds), err)
	}
	for i, object := range kinds {
		for j, n := range someRules() {
			if j < 14 || (i+j)%8 == 0 {
				compare(t, n, object)
			}
		}
	}
}

// FuzzApply has objects as they come, and as their bytes choose among shapes.
func FuzzApply(f *testing.F) {
	for i, object := range odd() {
		if len(object) < 1000 {
			f.Add([]byte(object), someRules()[i])
		}
	}
	f.Fuzz(func(t *testing.T, object []byte, n uint32) {
		n &^= 1 << 26 // the obvious way leaves no white space in a text, which is no white space of the object
		compare(t, n, object)
		compare(t, n, objects.Shaped(object))
	})
}

// TestI9NoSpellingEvadesARule writes one secret in all the ways that mean the same.
func TestI9NoSpellingEvadesARule(t *testing.T) {
	rules := Rules{Drop: []string{".spec.drop"}, Redact: []string{".data"}, Env: []string{"*PASS*"}}
	long := strings.Repeat(`,\"data\":\\`, 50)
	for how, object := range map[string]string{
		"escapes in keys":  `{"d\u0061ta":{"p":"s3cr3t"},"sp\u0065c":{"dr\u006fp":"s3cr3t"},"x":{"\u0065nv":[{"n\u0061me":"PASS","valu\u0065":"s3cr3t"}]}}`,
		"an escaped name":  `{"env":[{"name":"\u0050\u0041SS","value":"s3cr3t"}]}`,
		"slashes in names": `{"env":[{"name":"db/PASS","value":"s3cr3t"},{"name":"/PASS/","value":"s3cr3t"},{"name":"a\/PASS","value":"s3cr3t"}]}`,
		"duplicate keys":   `{"data":{"p":"s3cr3t"},"data":{"p":"s3cr3t","p":"s3cr3t"},"spec":{"drop":"s3cr3t"},"spec":{"drop":"s3cr3t","drop":"s3cr3t"}}`,
		"a name twice":     `{"env":[{"name":"PASS","name":"x","value":"s3cr3t"},{"name":"x","value":"s3cr3t","name":"PASS","value":"s3cr3t"}]}`,
		"order":            `{"x":{"env":[{"value":"s3cr3t","name":"PASS"}]},"spec":{"a":1,"drop":"s3cr3t"},"data":"s3cr3t"}`,
		"white space":      "{ \"x\" : { \"env\"\n: [ { \"name\" :\t\"PASS\" , \"value\" :\r\"s3cr3t\" } ] } , \"data\" : { \"p\" : \"s3cr3t\" } }",
		"braces in keys":   `{"{\"env\":[":1,"}}]":{"]":[]},"data":{"}":"s3cr3t"},"x":{"\"env\"":"}","env":[{"name":"PASS","value":"s3cr3t"}]}}`,
		"long keys":        `{"` + strings.Repeat("data", 2000) + `":1,"data":{"` + strings.Repeat("p", 5000) + `":"s3cr3t"}}`,
		"a long name":      `{"x":{"env":[{"name":"` + strings.Repeat("x", 5000) + `PASS","value":"s3cr3t"}]}}`,
		"nesting":          `{"a":` + strings.Repeat(`{"b":[`, 4000) + `{"env":[{"name":"PASS","value":"s3cr3t"}]}` + strings.Repeat("]}", 4000) + `,"data":{"p":"s3cr3t"}}`,
		"a value of lists": `{"env":[{"value":{"a":["s3cr3t",{"env":[{"name":"x","value":"s3cr3t"}]}]},"name":"PASS"}]}`,
		"an env within":    `{"env":[{"name":"x","value":{"env":{"name":"PASS","value":"s3cr3t"}}}]}`,
		"a list of lists":  `{"x":{"env":[[[{"name":"PASS","value":"s3cr3t"}]]]}}`,
		"long values":      `{"x":"` + long + `","data":{"` + long + `":"s3cr3t` + long + `","b":["` + long + `","s3cr3t"]},"spec":{"a":"` + long + `","drop":"s3cr3t` + long + `"},"env":[{"value":"s3cr3t` + long + `","name":"PASS"}]}`,
		"quotes in values": `{"x":"{\"env\":[{","data":"\\\"s3cr3t","y":"\\","env":[{"value":"\"s3cr3t","name":"\\PASS"}]}`,
		"no UTF-8":         "{\"x\xff\":\"\xff\",\"data\":\"s3cr3t\",\"y\":{\"env\":[{\"name\":\"\xffPASS\",\"value\":\"s3cr3t\"}]}}",
	} {
		if got := apply(t, rules, key, object); strings.Contains(got, "s3cr3t") {
			t.Errorf("%s: it became %.300s", how, got)
		}
	}
}

// TestI9NoSpellingEvadesOnly: whatever is not kept is gone.
func TestI9NoSpellingEvadesOnly(t *testing.T) {
	rules := Rules{Keep: []string{".spec.a"}}
	for how, object := range map[string]string{
		"escapes in keys": `{"sp\u0065c":{"\u0061":"kept","\u0061b":"s3cr3t"},"m\u0065tadata":{"name":"n","l\u0061bels":"s3cr3t"}}`,
		"duplicate keys":  `{"spec":"s3cr3t","spec":{"a":"kept","b":"s3cr3t"},"spec":["s3cr3t"],"a":"s3cr3t"}`,
		"order":           `{"x":{"spec":{"a":"s3cr3t"}},"spec":{"b":{"a":"s3cr3t"},"a":"kept"}}`,
		"white space":     "{ \"spec\" : { \"b\" :\t\"s3cr3t\" , \"a\"\n: \"kept\" } , \"c\" : [ \"s3cr3t\" ] }",
		"braces in keys":  `{"\"spec\":{\"a\":":"s3cr3t","spec":{"}":"s3cr3t","a":"kept"},"}":{"spec":{"a":"s3cr3t"}}}`,
		"long values":     `{"x":"s3cr3t` + strings.Repeat("x", 500) + `","spec":{"b":"` + strings.Repeat("x", 500) + `s3cr3t","a":"kept"}}`,
	} {
		if got := apply(t, rules, key, object); strings.Contains(got, "s3cr3t") || !strings.Contains(got, `"kept"`) {
			t.Errorf("%s: it became %.300s", how, got)
		}
	}
}

// TestI6VariablesWithinVariablesAreLookedAtOnce has a name after a value that holds the next one, a thousand times.
func TestI6VariablesWithinVariablesAreLookedAtOnce(t *testing.T) {
	const depth = 1000
	made, err := New(Rules{Env: []string{"P"}}, Key{Secret: []byte(key)})
	must(t, err)
	object := `{"env":` + strings.Repeat(`{"x":{"env":`, depth) + "[]" + strings.Repeat(`},"name":"P"}`, depth) + "}"
	r := &made.Worker().rewriter
	if !r.run(proven(made, []byte(object)), []byte(object)) || len(r.variables) != depth || r.foreseen != len(object)-1 {
		t.Errorf("%d variables, foreseen up to %d of %d", len(r.variables), r.foreseen, len(object))
	}
	for i, v := range r.variables {
		if !v.hidden {
			t.Fatal(fmt.Sprint(i, " is not hidden"))
		}
	}
}
