package scan

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestBytesOutsideASCIIAreNoBrackets(t *testing.T) {
	for c := range 256 {
		for at := range 8 {
			word := []byte("        ")
			word[at] = byte(c)
			low, other := lanes(binary.LittleEndian.Uint64(word))
			for want, mark := range map[byte]uint64{
				'"':  equal(low, quotes) &^ other,
				'\\': equal(low, backslashes) &^ other,
				'{':  equal(low|lowerCase, openers) &^ other,
				'}':  equal(low|lowerCase, closers) &^ other,
			} {
				is := byte(c) == want || byte(c) == want&^0x20 && want > 'z'
				if mark != 0 != is || mark&^(0x80<<(8*at)) != 0 {
					t.Errorf("byte %#x at %d is marked %#x for %q", c, at, mark, want)
				}
			}
		}
	}
}

// TestSkipIsWhatStepsSay, at once and in pieces, also of text that is no JSON, with rows of backslashes over the
// borders of words.
func TestSkipIsWhatStepsSay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 60_000 {
		alphabet := []string{`""\\{}[]:a1` + "\xa2\xdc\xfb\xfd\x5f\x7f\x02é ", `\\\\"{}`, `"ab{}[]`, `{}[]""aaaaaaaaaaaaaaaaaaaaaaaaaa`}[rnd.IntN(4)]
		text := []byte(strings.Repeat("[", rnd.IntN(30)))
		for range rnd.IntN(100) {
			text = append(text, alphabet[rnd.IntN(len(alphabet))])
		}
		text = append(text, strings.Repeat("]", rnd.IntN(60))...)
		var b Balance
		b.Enter()
		want := slices.IndexFunc(text, b.Step) + 1
		for _, length := range []int{len(text) + 1, 1 + rnd.IntN(40)} {
			b.Enter()
			got := 0
			for done := 0; got == 0 && done < len(text); done += length {
				if n := b.Skip(text[done:min(len(text), done+length)]); n >= 0 {
					got = done + n
				}
			}
			if got != want {
				t.Fatalf("Skip(%q) in pieces of %d is %d, want %d", text, length, got, want)
			}
		}
	}
}
