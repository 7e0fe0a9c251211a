package scan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/objects"
)

// walk goes through the text by steps, and skips what is deeper than the depth.
func walk(c *Cursor, depth int) {
	closing := map[byte]byte{'{': '}', '[': ']'}[c.Byte()]
	if closing == 0 || depth == 0 {
		c.Skip()
		return
	}
	object := c.Byte() == '{'
	c.Enter()
	for c.Next(closing) {
		if object {
			c.Key()
		}
		walk(c, depth-1)
	}
}

// check holds the proof against encoding/json, and walks of several depths against the text's end.
func check(t *testing.T, text []byte) {
	t.Helper()
	want := json.Valid(text)
	var value any
	huge := want && json.Unmarshal(text, &value) != nil
	var p Proof
	p.Prove([]byte(`{"env":[{}]}`), "env")
	p.Prove(text, "env")
	if p.Whole() != want || want && p.Huge() != huge {
		t.Fatalf("%.300q: whole %t, huge %t; want %t, %t", text, p.Whole(), p.Huge(), want, huge)
	}
	if !want {
		return
	}
	for _, depth := range []int{0, 1, 2, 5, 20_000} {
		c := p.Cursor()
		if walk(&c, depth); Space(text, c.At()) != len(text) || c.Place() != len(p.places) {
			t.Fatalf("%.300q by steps of depth %d: ends at %d, place %d of %d", text, depth, c.At(), c.Place(), len(p.places))
		}
	}
	for i, where := range p.places {
		c := p.At(i)
		if value := c.Skip(); !json.Valid(value) || c.At() != int(where.end) || value[0] != '{' && value[0] != '[' && len(value) < longString {
			t.Fatalf("%.300q: place %d is %.300q", text, i, value)
		}
	}
	watched := map[int]bool{}
	c := p.Cursor()
	find(&c, watched)
	if len(watched) != len(p.watched) {
		t.Fatalf("%.300q: %d places are watched, want %d", text, len(p.watched), len(watched))
	}
	for _, place := range p.watched {
		if !watched[int(place)] {
			t.Fatalf("%.300q: place %d is watched", text, place)
		}
	}
}

// find notes the objects and lists whose key encoding/json reads as env.
func find(c *Cursor, watched map[int]bool) {
	closing := map[byte]byte{'{': '}', '[': ']'}[c.Byte()]
	if closing == 0 {
		c.Skip()
		return
	}
	object := c.Byte() == '{'
	c.Enter()
	for c.Next(closing) {
		var key string
		if object && json.Unmarshal(c.Key(), &key) == nil && key == "env" && (c.Byte() == '{' || c.Byte() == '[') {
			watched[c.Place()] = true
		}
		find(c, watched)
	}
}

func texts() []string {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }
	return []string{
		"", " ", "{}", "[]", " [ ] ", `{"a":1}`, `{"a":1,}`, `{,}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{"a" : 1 , "b":[ ]}x`, "{}{}", "{}\x00", "1", "-", "01",
		"1.", "1e", "1e+", "1e400", "-1e400", strings.Repeat("9", 309), strings.Repeat("9", 301), "0.5e-999", `"a`, `"a\`, `"\u12`, `"\u12g4"`, "\"\n\"",
		"\"\x7f\x80\xff\"", `"aaaaaaa\"bbbbbbb\\"`, "nul", "nulll", "true", "truefalse", `{"env":[{"env":{}}],"e\u006ev":{},"\u0065\u006e\u0076":[],"env":1,"envy":[]}`, `{"a":{"env" : [ ] }}`,
		`{"` + strings.Repeat("k", 200) + `":"` + strings.Repeat("\\n", 200) + `","env":["` + strings.Repeat("v", 200) + `",{"a":"` + strings.Repeat("v", 125) + `"}]}`, `{"a":1"b":2}`, `[1 2]`, `{"a":1]`, `[1}`, "]", "}", `{a:1}`,
		deep(9998), deep(10_000), deep(10_002), strings.Repeat("[", 20_000), strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
	}
}

func TestTheTextIsJSONWhereEncodingJSONSaysSo(t *testing.T) {
	for _, text := range texts() {
		check(t, []byte(text))
	}
	kinds, err := objects.Kinds()
	if err != nil || len(kinds) < 100 {
		t.Fatalf("%d kinds, %v", len(kinds), err)
	}
	for _, text := range kinds {
		check(t, text)
	}
}

// TestEveryByteIsLookedAt puts every byte at every place of two words.
func TestEveryByteIsLookedAt(t *testing.T) {
	const text = `{"key":"a value of some length","n":[-1.5e3,true]}`
	for i := range len(text) {
		for b := range 256 {
			broken := []byte(text)
			broken[i] = byte(b)
			check(t, broken)
		}
		check(t, []byte(text[:i]))
	}
}

func TestTextIsWhatEncodingJSONReads(t *testing.T) {
	for _, token := range []string{`""`, `"a"`, `"\u0061\n"`, "\"\xff\"", `"\ud800"`, `"é\/"`, `"\ud83d\ude00"`, `"\"\\\/\b\f\n\r\t x\\"`, "\"\\n\xff\"", `"\n\u0061\n"`,
		`"` + strings.Repeat(`1234567\"12345678\\1\n`, 9) + `"`} {
		var want string
		if err := json.Unmarshal([]byte(token), &want); err != nil {
			t.Fatal(err)
		}
		if got := Text([]byte(token)); string(got) != want {
			t.Errorf("%s is %q, want %q", token, got, want)
		}
		if got := AppendText([]byte("before"), []byte(token)); string(got) != "before"+want {
			t.Errorf("%s behind something is %q, want %q", token, got, want)
		}
	}
}

// TestEscapesLieAnywhereInAWord has strings of several words, of escaped quotes and of all else that can stand beside
// them, which end anywhere or not at all.
func TestEscapesLieAnywhereInAWord(t *testing.T) {
	alphabets := [][]string{
		{`\"`, "a", "b", ":", "0", ","},
		{`\"`, `\"`, `\"`, `\\`, `\n`, "a", "é"},
		{`\"`, "a", "b", "c", `\`, `"`, "\x01", "\x7f", "\xff", "\xa2\xdc", `\u0041`, `\/`, `\x`},
		{`\"`, `\\\"`, `\\`, "\\"},
	}
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 60_000 {
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		token := []byte(`"`)
		for range rnd.IntN(50) {
			token = append(token, alphabet[rnd.IntN(len(alphabet))]...)
		}
		token = append(token, `"`...)
		check(t, token)
		var want string
		if json.Unmarshal(token, &want) == nil && string(AppendText([]byte("x"), token)) != "x"+want {
			t.Fatalf("%q is %q, want %q", token, AppendText(nil, token), want)
		}
	}
}

// FuzzScan has texts as they come, and as their bytes choose among shapes.
func FuzzScan(f *testing.F) {
	for _, text := range texts() {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		check(t, text)
		check(t, objects.Shaped(text))
		var want string
		if token := `"` + string(text) + `"`; json.Unmarshal([]byte(token), &want) == nil && string(AppendText(nil, []byte(token))) != want {
			t.Fatalf("%s is %q, want %q", token, AppendText(nil, []byte(token)), want)
		}
	})
}

// BenchmarkProve is a proof of the 12 KiB Pod of the benchmarks, beside that of encoding/json.
func BenchmarkProve(b *testing.B) {
	object, err := os.ReadFile(filepath.Join("..", "..", "bench", "testdata", "pod.template.json"))
	if err != nil {
		b.Fatal(err)
	}
	object = bytes.TrimSpace(object)
	b.Run("scan", func(b *testing.B) {
		var p Proof
		b.SetBytes(int64(len(object)))
		for b.Loop() {
			if p.Prove(object, ""); !p.Whole() {
				b.Fatal("not whole")
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(object)))
		for b.Loop() {
			if !json.Valid(object) {
				b.Fatal("not valid")
			}
		}
	})
}
