package scan

import (
	"encoding/binary"
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
