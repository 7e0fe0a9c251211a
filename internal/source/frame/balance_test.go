package frame

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// skipSteps is balance.skip without words.
func skipSteps(text []byte) int {
	var b scan.Balance
	b.Enter()
	for i, c := range text {
		if b.Step(c) {
			return i + 1
		}
	}
	return -1
}

// checkBalance compares skip with steps, at once and in pieces, and with encoding/json where it is JSON.
func checkBalance(t *testing.T, text []byte, piece int) {
	t.Helper()
	want := skipSteps(text)
	var b scan.Balance
	b.Enter()
	if got := b.Skip(text); got != want {
		t.Fatalf("skip(%q) is %d, want %d", text, got, want)
	}
	b.Enter()
	got, done := -1, 0
	for part := range bytes.SplitAfterSeq(text, []byte{byte(piece)}) {
		if n := b.Skip(part); n >= 0 {
			got = done + n
			break
		}
		done += len(part)
	}
	if got != want {
		t.Fatalf("skip(%q) in pieces is %d, want %d", text, got, want)
	}
	if object := "{" + string(text); want == len(text) && json.Valid([]byte(object)) {
		c := cursor{data: []byte(object + " ")}
		if c.skip(); c.pos != len(object) || c.unsure {
			t.Fatalf("the cursor steps over %d of %q", c.pos, object)
		}
	}
}

func TestBalanceIsWhatStepsSay(t *testing.T) {
	const alphabet = `""""\\{}[]{}[],:a1` + "\xa2\xdc\xfb\xfd\x5f\x7f\x02é😀 "
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		text := make([]byte, rnd.IntN(80))
		for i := range text {
			text[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		checkBalance(t, text, int(alphabet[rnd.IntN(len(alphabet))]))
	}
}

// TestStringsEndWhereJSONSays puts every short text of quotes and backslashes at every place in a word.
func TestStringsEndWhereJSONSays(t *testing.T) {
	for n := range 1 << 12 {
		text := make([]byte, 12)
		for i := range text {
			text[i] = `\"`[n>>i&1]
		}
		for _, pad := range []int{0, 1, 5, 7, 8, 25, 31, 32, 33, 40} {
			data := []byte(`"` + strings.Repeat("x", pad) + string(text) + `" tail`)
			c := cursor{data: data}
			c.skipString()
			end := 0
			dec := json.NewDecoder(bytes.NewReader(data))
			if _, err := dec.Token(); err == nil {
				end = int(dec.InputOffset())
			}
			if c.unsure != (end == 0) || !c.unsure && c.pos != end {
				t.Fatalf("the string in %q ends at %d (unsure %v), want %d", data, c.pos, c.unsure, end)
			}
		}
	}
}

func TestDepthDoesNotMatter(t *testing.T) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		for _, brackets := range []string{"[]", `{}`} {
			open, closing := strings.Repeat(brackets[:1], n), strings.Repeat(brackets[1:], n)
			if brackets == "{}" {
				open = strings.Repeat(`{"a":`, n) + "1"
			}
			line := `{"type":"ADDED","object":{"metadata":{"name":"deep"},"spec":` + open + closing + "}}\n"
			f, err := NewReader(strings.NewReader(line), Options{}).Next()
			if err != nil || f.Object.Name != "deep" {
				t.Errorf("%d levels of %s: %v", n, brackets, err)
			}
			// The slow path refuses what encoding/json refuses, and does not overflow its stack.
			_, err = NewReader(strings.NewReader(" "+line), Options{}).Next()
			if wrong := !json.Valid([]byte(line)); wrong != (err != nil) {
				t.Errorf("%d levels of %s on the slow path: %v", n, brackets, err)
			}
		}
	}
}
