package transform

import (
	"fmt"
	"hash"
	"regexp"
	"strings"
	"testing"
)

// hashesOf are those in what rules leave of an object.
func hashesOf(t *testing.T, rules Rules, key Key, object string, owner Owner) []string {
	t.Helper()
	return regexp.MustCompile(`hmac-sha256:[0-9a-f]{32}`).FindAllString(applyTo(t, rules, key, object, owner), -1)
}

// TestI9EqualValuesHaveTheirOwnHashes: whoever may write an object, or a field of one, and read the hashes of others,
// learns nothing by guesses.
func TestI9EqualValuesHaveTheirOwnHashes(t *testing.T) {
	rules := Rules{Redact: []string{".data", ".list", ".deep"}, Env: []string{"PIN*"}, Applied: true}
	long := strings.Repeat("k", 300)
	object := `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"pin\":\"1234\"},\"x\":{\"env\":[{\"name\":\"PIN\",\"value\":\"1234\"}]}}"}},` +
		`"data":{"pin":"1234","pin2":"1234","":"1234","` + long + `":{"a":"1234","b":"1234"},"` + long + `b":{"a":"1234"}},"list":["1234","1234",["1234"],{"0":"1234"}],` +
		`"deep":{"a":{"bk\u0001c":"1234"},"ak\u0003bk":{"c":"1234"}},` +
		`"spec":{"containers":[{"env":[{"name":"PIN","value":"1234"},{"name":"PIN","value":"1234"}]},{"env":[{"name":"PIN2","value":"1234"}]}]},"env":{"name":"PIN","value":"1234"}}`
	key := Key{Secret: []byte("0123456789abcdef"), Cluster: "one"}
	seen := map[string]string{}
	for name, c := range map[string]struct {
		key   Key
		owner Owner
	}{
		"web":               {key, web()},
		"another object":    {key, Owner{"apps", "Deployment", "shop", "web2"}},
		"another namespace": {key, Owner{"apps", "Deployment", "shop2", "web"}},
		"another kind":      {key, Owner{"apps", "DaemonSet", "shop", "web"}},
		"another group":     {key, Owner{"extensions", "Deployment", "shop", "web"}},
		"no namespace":      {key, Owner{"apps", "Deployment", "", "shopweb"}},
		"a longer one":      {key, Owner{"apps", "Deployment", "shopw", "eb"}},
		"another cluster":   {Key{Secret: key.Secret, Cluster: "two"}, web()},
		"another secret":    {Key{Secret: []byte("fedcba9876543210"), Cluster: "one"}, web()},
	} {
		hashes := hashesOf(t, rules, c.key, object, c.owner)
		if len(hashes) != 18 {
			t.Fatalf("%s: %d hashes", name, len(hashes))
		}
		for i, hash := range hashes {
			if is := fmt.Sprintf("%s %d", name, i); seen[hash] != "" {
				t.Errorf("%s and %s have the same hash", is, seen[hash])
			} else {
				seen[hash] = is
			}
		}
	}
	key.Comparable = true
	if one := hashesOf(t, rules, key, object, web()); strings.Trim(strings.Join(one, " "), " ") != strings.TrimRight(strings.Repeat(one[0]+" ", len(one)), " ") {
		t.Errorf("comparable hashes differ: %v", one)
	}
	if other := hashesOf(t, rules, Key{Secret: key.Secret, Cluster: "two", Comparable: true}, object, Owner{}); len(other) != 18 || other[0] != hashesOf(t, rules, key, `{"data":"1234"}`, web())[0] {
		t.Errorf("comparable hashes depend on more than the value: %v", other)
	}
}

// TestI9AHashIsOfItsFieldAndOfNothingElse: it tells of no change of another field, and outlives how the object is
// written.
func TestI9AHashIsOfItsFieldAndOfNothingElse(t *testing.T) {
	rules := Rules{Drop: []string{".spec.secret"}, Redact: []string{".data"}, Env: []string{"PIN"}}
	key := Key{Secret: []byte("0123456789abcdef"), Cluster: "one"}
	long := strings.Repeat("k", 150)
	object := `{"data":{"` + long + `":{"` + long + `":{"pin":"1234"}}},"spec":{"containers":[{"x":1},{"env":[{"name":"A"},{"name":"PIN","value":"1234"}]}]}}`
	want := hashesOf(t, rules, key, object, web())
	if len(want) != 2 {
		t.Fatalf("hashes are %v", want)
	}
	for how, c := range map[string]struct{ object, last string }{
		"white space":     {strings.ReplaceAll(object, ":", " : "), ""},
		"escapes":         {strings.ReplaceAll(strings.ReplaceAll(object, "pin", `p\u0069n`), "spec", `\u0073pec`), ""},
		"more fields":     {`{"a":{"env":[{"name":"PIN","value":null}]},` + object[1:], ""},
		"a field is left": {strings.Replace(object, `"spec":{`, `"spec":{"secret":1,`, 1), ""},
		"order":           {`{"spec":{"containers":[{"x":1},{"env":[{"name":"A"},{"value":"1234","name":"PIN"}]}]},"data":{"` + long + `":{"` + long + `":{"pin":"1234"}}}}`, "turned"},
		"more values":     {strings.Replace(object, `{"pin"`, `{"a":null,"pin"`, 1), ""},
		"hashed siblings": {strings.Replace(object, `:{"pin"`, `:{"`+long+`":{"a":"1"},"pin"`, 1), "more"},
		"hashed above":    {strings.Replace(object, `"data":{`, `"data":{"a":"1",`, 1), "more"},
	} {
		got := hashesOf(t, rules, key, c.object, web())
		switch c.last {
		case "turned":
			got[0], got[1] = got[1], got[0]
		case "more":
			got = got[1:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: hashes are %v, want %v", how, got, want)
		}
	}
}

// TestI6NoPathIsHashedForEachValue: whoever writes objects chooses how long and deep the way to a value is.
func TestI6NoPathIsHashedForEachValue(t *testing.T) {
	made, err := New(Rules{Redact: []string{".data"}, Env: []string{"P"}}, Key{Secret: []byte(key)})
	must(t, err)
	var values, variables strings.Builder
	for i := range 500 {
		fmt.Fprintf(&values, `{"%s":`, strings.Repeat("k", 1000))
		fmt.Fprintf(&variables, `{"a":{"env":[{"name":"P","value":"%d"}]},"%s":`, i, strings.Repeat("k", 1000))
	}
	object := `{"data":` + values.String() + "[" + strings.Repeat("1,", 1000) + "1]" + strings.Repeat("}", 500) + `,"x":` + variables.String() + "1" + strings.Repeat("}", 501)
	worker := made.Worker()
	counted := &counter{Hash: worker.rewriter.mac}
	worker.rewriter.mac = counted
	if _, err := worker.Apply([]byte(object), proven(made, []byte(object)), web()); err != nil {
		t.Fatal(err)
	}
	if most := 4 * len(object); counted.bytes < 1000 || counted.bytes > most {
		t.Errorf("%d bytes are hashed for an object of %d, want at most %d", counted.bytes, len(object), most)
	}
}

// counter counts what is hashed.
type counter struct {
	hash.Hash
	bytes int
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return c.Hash.Write(p)
}
