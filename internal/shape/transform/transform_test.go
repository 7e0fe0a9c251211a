package transform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// key and other are of two installations.
const (
	key   = "0123456789abcdef"
	other = "fedcba9876543210"
)

func apply(t *testing.T, rules Rules, key, object string) string {
	t.Helper()
	return applyTo(t, rules, Key{Secret: []byte(key), Comparable: true}, object, web())
}

func applyTo(t *testing.T, rules Rules, key Key, object string, owner Owner) string {
	t.Helper()
	transform, err := New(rules, key)
	must(t, err)
	out, err := transform.Apply([]byte("before"), []byte(object), owner)
	must(t, err)
	text, found := strings.CutPrefix(string(out), "before")
	if !found || !json.Valid([]byte(text)) {
		t.Fatalf("%q became %q, which is not JSON behind what was there", object, out)
	}
	return text
}

func TestWhatNoRuleConcernsIsCopied(t *testing.T) {
	const object = `{"apiVersion":"v1","spec":{"big":12345678901234567890.10,"e":1E400,"odd":"\u00e9\/\"]}","dup":1,"dup":2},"metadata":{"annotations":{"spec":"{\"a\":1}"}}}`
	if got := apply(t, Rules{Drop: []string{".status"}, Redact: []string{".data"}, Env: []string{"X"}}, key, object); got != object {
		t.Errorf("became %s", got)
	}
}

func TestRules(t *testing.T) {
	h := func(text string) string { // the hash of a string
		return strings.Trim(apply(t, Rules{Redact: []string{".x"}}, key, `{"x":`+text+`}`), "{}")[len(`"x":`):]
	}
	for name, c := range map[string]struct {
		rules        Rules
		object, want string
	}{
		"drop a field":            {Rules{Drop: []string{".status"}}, `{"a":1,"status":{"x":[1]},"b":2}`, `{"a":1,"b":2}`},
		"drop the only field":     {Rules{Drop: []string{"{.a}"}}, ` { "a" : 1 } `, `{}`},
		"drop the last field":     {Rules{Drop: []string{"$.b"}}, `{"a":1,"b":2}`, `{"a":1}`},
		"drop in a list":          {Rules{Drop: []string{".l[*].x"}}, `{"l":[{"x":1,"y":2},{"x":3},[4]]}`, `{"l":[{"y":2},{},[4]]}`},
		"drop an element":         {Rules{Drop: []string{".l[1]"}}, `{"l":[1,2,3]}`, `{"l":[1,3]}`},
		"drop a quoted name":      {Rules{Drop: []string{`.m['a.b/c']`, `.m["d e"]`}}, `{"m":{"a.b/c":1,"d e":2,"a":{"b":3}}}`, `{"m":{"a":{"b":3}}}`},
		"drop every value":        {Rules{Drop: []string{".m.*.x"}}, `{"m":{"a":{"x":1},"b":{"x":2,"y":3}}}`, `{"m":{"a":{},"b":{"y":3}}}`},
		"drop an escaped key":     {Rules{Drop: []string{".data"}}, `{"d\u0061ta":1}`, `{}`},
		"drop a key twice":        {Rules{Drop: []string{".data"}}, `{"data":1,"data":2,"x":3}`, `{"x":3}`},
		"keep":                    {Rules{Keep: []string{".spec.a"}}, `{"kind":"K","spec":{"a":{"x":[1]},"b":2},"status":1,"metadata":{"name":"n","labels":{}}}`, `{"kind":"K","spec":{"a":{"x":[1]}},"metadata":{"name":"n"}}`},
		"keep within a scalar":    {Rules{Keep: []string{".spec.a.b"}}, `{"spec":{"a":5}}`, `{"spec":{}}`},
		"drop wins over keep":     {Rules{Keep: []string{".spec"}, Drop: []string{".spec.a"}}, `{"spec":{"a":1,"b":2}}`, `{"spec":{"b":2}}`},
		"redact a string":         {Rules{Redact: []string{".a"}}, `{"a":"v","b":"v"}`, `{"a":` + h(`"v"`) + `,"b":"v"}`},
		"redact what is within":   {Rules{Redact: []string{".a"}}, `{"a":{"x":["v",1,true,null,{"y":"v"}],"z":{}}}`, `{"a":{"x":[` + h(`"v"`) + `,` + h(`1`) + `,` + h(`true`) + `,null,{"y":` + h(`"v"`) + `}],"z":{}}}`},
		"redact however written":  {Rules{Redact: []string{".a"}}, `{"a":["\u0076","v"]}`, `{"a":[` + h(`"v"`) + `,` + h(`"v"`) + `]}`},
		"a variable":              {Rules{Env: []string{"*password*"}}, `{"spec":{"c":[{"env":[{"name":"DB_PASSWORD","value":"v"},{"value":"w","name":"USER"}]}]}}`, `{"spec":{"c":[{"env":[{"name":"DB_PASSWORD","value":` + h(`"v"`) + `},{"value":"w","name":"USER"}]}]}}`},
		"a variable, name behind": {Rules{Env: []string{"P"}}, `{"env":[{"value":"v","name":"p"}]}`, `{"env":[{"value":` + h(`"v"`) + `,"name":"p"}]}`},
		"no variable":             {Rules{Env: []string{"P"}}, `{"x":[{"value":"v","name":"P"}],"env":"P"}`, `{"x":[{"value":"v","name":"P"}],"env":"P"}`},
		"variables of a map":      {Rules{Env: []string{"*P"}}, `{"v":{"env":{"P":"v","p":{"x":[1,"w"]},"Q":"v"},"P":"v"}}`, `{"v":{"env":{"P":` + h(`"v"`) + `,"p":{"x":[` + h(`1`) + `,` + h(`"w"`) + `]},"Q":"v"},"P":"v"}}`},
		"no names of variables":   {Rules{Env: []string{"*"}}, `{"env":[{"name":"P","value":"v","valueFrom":{"a":"b"}}]}`, `{"env":[{"name":"P","value":` + h(`"v"`) + `,"valueFrom":{"a":"b"}}]}`},
		"managedFields":           {Rules{Redact: []string{".spec.tokens"}, Managed: true}, managed(`,"k:{\"name\":\"v\",\"ip\":\"w\"}":{".":{},"f:ip":{}},"v:\"v\"":{}`), managed("")},
		"managedFields elsewhere": {Rules{Redact: []string{".x"}, Managed: true}, `{"metadata":{"fieldsV1":{"v:1":1}},"spec":` + managed(`,"k:{}":1`) + `}`, `{"metadata":{"fieldsV1":{"v:1":1}},"spec":` + managed(`,"k:{}":1`) + `}`},
		"a Secret's annotations":  {Secrets(), `{"metadata":{"annotations":{"kapp.k14s.io/original":"{\"data\":{\"p\":\"v\"}}","x":"","y":null},"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"kapp.k14s.io/original":` + h(`"{\"data\":{\"p\":\"v\"}}"`) + `,"x":` + h(`""`) + `,"y":null},"labels":{"a":"b"}}}`},
		"a Secret":                {Secrets(), `{"data":{"p":"czNjcjN0"},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"s3cr3t"}},"type":"Opaque"}`, `{"data":{"p":` + h(`"czNjcjN0"`) + `},"metadata":{"annotations":{}},"type":"Opaque"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := apply(t, c.rules, key, c.object); got != c.want {
				t.Errorf("%s became\n%s, want\n%s", c.object, got, c.want)
			}
		})
	}
}

// managed are managedFields with members of lists and sets, which have values in their names.
func managed(members string) string {
	return `{"metadata":{"managedFields":[{"manager":"v:m","fieldsV1":{"f:spec":{"f:tokens":{".":{}` + members + `},"f:v:":{}}}}],"name":"n"}}`
}

func TestI9HashesTellOfChangesAndOfNothingElse(t *testing.T) {
	rules := Rules{Redact: []string{".a"}}
	one, again, two := apply(t, rules, key, `{"a":"s3cr3t"}`), apply(t, rules, key, `{"a":"s3cr3t"}`), apply(t, rules, key, `{"a":"s3cr3u"}`)
	if one != again || one == two {
		t.Errorf("hashes are %s, %s of the same value, and %s of another", one, again, two)
	}
	if elsewhere := apply(t, rules, other, `{"a":"s3cr3t"}`); elsewhere == one {
		t.Errorf("hash %s does not depend on the key", one)
	}
}

func TestBadRulesAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		"":                        `drop path "": it names the whole object; want a field, such as .spec.replicas`,
		"{.}":                     `drop path "{.}": it names the whole object; want a field, such as .spec.replicas`,
		"{.a":                     `drop path "{.a": a { without its }`,
		"..a":                     `drop path "..a": a part is empty; .. is not supported`,
		".a.":                     `drop path ".a.": a part is empty; .. is not supported`,
		".a b":                    `drop path ".a b": "a b" is not a field; write a name with special characters as ['name']`,
		".a[":                     `drop path ".a[": a [ without its ]`,
		".a['b":                   `drop path ".a['b": a [' without its '], or nothing between`,
		".a[-1]":                  `drop path ".a[-1]": [-1] is not supported; allowed: [*], an index such as [0], a field such as ['a.b/c']`,
		".a[?(@.name==\"x\")].b.": `drop path ".a[?(@.name==\"x\")].b.": [?(@.name=="x")] is not supported; allowed: [*], an index such as [0], a field such as ['a.b/c']`,
	} {
		if _, err := New(Rules{Drop: []string{path}}, Key{Secret: []byte(key)}); err == nil || err.Error() != want {
			t.Errorf("path %q: error %v, want %s", path, err, want)
		}
	}
	for _, pattern := range []string{"", "[", "a["} {
		if _, err := New(Rules{Env: []string{pattern}}, Key{Secret: []byte(key)}); err == nil {
			t.Errorf("pattern %q was taken", pattern)
		}
	}
}

func TestI9WhatIsNoObjectGivesNothing(t *testing.T) {
	transform, err := New(Secrets(), Key{Secret: []byte(key)})
	must(t, err)
	for _, text := range []string{"", " ", "[]", `"a"`, "1", `{"data":{"p":"s3cr3t"}`, `{"data":{"p":"s3cr3t"}}x`, `{"data":{"p":"s3cr3t"},}`, "{\"a\":\"\n\"}"} {
		if out, err := transform.Apply(nil, []byte(text), web()); err == nil || out != nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q became %q, %v", text, out, err)
		}
	}
}

// TestI9WhatAWorkerGaveStays has one worker make many objects, short and long, of which none may become another.
func TestI9WhatAWorkerGaveStays(t *testing.T) {
	made, err := New(Rules{Drop: []string{".a"}, Redact: []string{".b"}}, Key{Secret: []byte(key)})
	must(t, err)
	worker := made.Worker()
	var objects, left, want [][]byte
	for i := range 3000 {
		object := fmt.Appendf(nil, `{"a":%d,"b":["%d"],"c":"%s"}`, i, i, strings.Repeat("c", i%100*i%20_000))
		if i%3 == 0 {
			object = fmt.Appendf(nil, `{"c":%d}`, i) // all of it stays
		}
		before := bytes.Clone(object)
		out, err := worker.Apply(object, proven(made, object), web())
		if err != nil || !bytes.Equal(object, before) || cap(out) != len(out) && i%3 != 0 {
			t.Fatalf("%.60q became %.60q, %v; now it is %.60q", before, out, err, object)
		}
		objects, left, want = append(objects, object), append(left, out), append(want, bytes.Clone(out))
	}
	for i := range left {
		if !bytes.Equal(left[i], want[i]) {
			t.Errorf("%.60q became %.60q, and later %.60q", objects[i], want[i], left[i])
		}
	}
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
