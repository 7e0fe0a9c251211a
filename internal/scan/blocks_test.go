package scan

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// steps is Skip without blocks and words.
func steps(text []byte) int {
	var b Balance
	b.Enter()
	for i, c := range text {
		if b.Step(c) {
			return i + 1
		}
	}
	return -1
}

// TestBlocksAreWhatStepsSay has texts of several blocks, with rows of backslashes over their borders and with their end
// anywhere, at once and in pieces of all lengths, so that words and single steps go on where blocks stopped.
func TestBlocksAreWhatStepsSay(t *testing.T) {
	alphabets := []string{`""\\{}[]:a1` + "\xa2\xdc\xfb\xfd\x5f\x7f\x02é ", `\\\\"{}`, `"ab{}[]`, `{}[]""aaaaaaaaaaaaaaaaaaaaaaaaaa`}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 30_000 {
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		text := []byte(strings.Repeat("[", rnd.IntN(60)))
		for range rnd.IntN(1000) {
			text = append(text, alphabet[rnd.IntN(len(alphabet))])
		}
		text = append(text, strings.Repeat("]", rnd.IntN(400))...)
		checkPieces(t, text, len(text)+1)
		words := Balance{depth: 1}
		if got, want := words.skipRest(text, 0), steps(text); got != want {
			t.Fatalf("by words, %q ends at %d, want %d", text, got, want)
		}
		checkPieces(t, text, 1+rnd.IntN(600))
		checkPieces(t, text, 1+rnd.IntN(40))
	}
}

// checkPieces compares Skip in pieces of the length with steps.
func checkPieces(t *testing.T, text []byte, length int) {
	t.Helper()
	var b Balance
	b.Enter()
	got := -1
	for done := 0; got < 0 && done < len(text); done += length {
		if n := b.Skip(text[done:min(len(text), done+length)]); n >= 0 {
			got = done + n
		}
	}
	if want := steps(text); got != want {
		t.Fatalf("Skip(%q) in pieces of %d is %d, want %d", text, length, got, want)
	}
}

func TestBlocksMarkExactlyTheirBytes(t *testing.T) {
	if !canLook() {
		t.Skip("this processor has no AVX2: there are no blocks")
	}
	for c := range 256 {
		for at := range blocks * blockBytes {
			var p [blocks * blockBytes]byte
			p[at] = byte(c)
			var got, want [blocks]block
			look(&got, &p[0])
			w, bit := &want[at/blockBytes], uint64(1)<<(at%blockBytes)
			switch c {
			case '"':
				w.quotes = bit
			case '\\':
				w.backslashes = bit
			case '{', '[':
				w.openers = bit
			case '}', ']':
				w.closers = bit
			}
			if got != want {
				t.Fatalf("byte %#x at %d is marked %x, want %x", c, at, got, want)
			}
		}
	}
}

// TestEscapedTextEndsWhereStepsSay has texts with rows of backslashes, over the borders of words and blocks, too.
func TestEscapedTextEndsWhereStepsSay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 30_000 {
		var text strings.Builder
		text.WriteString(strings.Repeat("a", rnd.IntN(200)))
		for range rnd.IntN(60) {
			text.WriteString(strings.Repeat(`\`, rnd.IntN(5)*2) + []string{"a", `\"`, `\n`, `\"b\":\"`, strings.Repeat("é{", rnd.IntN(40))}[rnd.IntN(5)])
		}
		text.WriteString([]string{`"`, `"}`, "", `\`}[rnd.IntN(4)] + strings.Repeat(`"`, rnd.IntN(300)))
		want, escaped := -1, false
		for i, c := range []byte(text.String()) {
			if c == '"' && !escaped {
				want = i + 1
				break
			}
			escaped = c == '\\' && !escaped
		}
		if got := TextEnd([]byte(text.String())); got != want {
			t.Fatalf("TextEnd(%q) is %d, want %d", text.String(), got, want)
		}
		if got := textEnd([]byte(text.String()), 0, 0); got != want {
			t.Fatalf("by words, %q ends at %d, want %d", text.String(), got, want)
		}
	}
}

// BenchmarkBlocks is what the assembly is worth: the same texts by blocks and by words.
func BenchmarkBlocks(b *testing.B) {
	escaped := []byte(strings.Repeat(`\"name\":\"web\",\"image\":\"registry.example.com/web:1.2.3\",`, 50) + `"`)
	object := []byte(strings.Repeat(`"env":[{"name":"SETTING","value":"db.payments.svc.cluster.local:5432"}],`, 160) + `"a":1}`)
	end := func(name string, text []byte, f func([]byte) int) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if f(text) != len(text) {
					b.Fatal("another end")
				}
			}
		})
	}
	end("text/blocks", escaped, TextEnd)
	end("text/words", escaped, func(p []byte) int { return textEnd(p, 0, 0) })
	balance := Balance{depth: 1}
	end("object/blocks", object, func(p []byte) int { balance.Enter(); return balance.Skip(p) })
	end("object/words", object, func(p []byte) int { balance.Enter(); return balance.skipRest(p, 0) })
}
