package frame

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestBlocksAreWhatStepsSay has texts of several blocks, with rows of backslashes over their borders and with their end
// anywhere, at once and in pieces of all lengths, so that words and single steps go on where blocks stopped.
func TestBlocksAreWhatStepsSay(t *testing.T) {
	if !canLook() {
		t.Skip("this processor has no AVX2: there are no blocks")
	}
	alphabets := []string{`""\\{}[]:a1` + "\xa2\xdc\xfb\xfd\x5f\x7f\x02é ", `\\\\\\"{}`, `"ab{}[]`, `{}[]""aaaaaaaaaaaaaaaaaaaaaaaaaa`}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 30_000 {
		alphabet := alphabets[rnd.IntN(len(alphabets))]
		text := []byte(strings.Repeat("[", rnd.IntN(60)))
		for range rnd.IntN(1000) {
			text = append(text, alphabet[rnd.IntN(len(alphabet))])
		}
		text = append(text, strings.Repeat("]", rnd.IntN(400))...)
		checkBalance(t, text, int(alphabet[rnd.IntN(len(alphabet))]))
		checkPieces(t, text, rnd)
	}
}

// checkPieces compares skip in pieces of random lengths with steps.
func checkPieces(t *testing.T, text []byte, rnd *rand.Rand) {
	t.Helper()
	var b balance
	b.enter()
	got := -1
	for done := 0; got < 0 && done < len(text); {
		piece := text[done:min(len(text), done+1+rnd.IntN(600))]
		if n := b.skip(piece); n >= 0 {
			got = done + n
		}
		done += len(piece)
	}
	if want := skipSteps(text); got != want {
		t.Fatalf("skip(%q) in pieces is %d, want %d", text, got, want)
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

// TestEscapedTextEndsWhereStepsSay has texts of several blocks with rows of backslashes over their borders.
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
		if got := skipEscaped([]byte(text.String())); got != want {
			t.Fatalf("skipEscaped(%q) is %d, want %d", text.String(), got, want)
		}
	}
}
