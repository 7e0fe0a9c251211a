package scan

import (
	"encoding/binary"
	"math/bits"
)

// TextEnd returns the length of the rest of a string, with its quote, or -1. It is for text within text (the last
// applied configuration), which has a backslash in nearly every word: looking for the next quote would stop at each.
func TextEnd(p []byte) int {
	i, escape, end := skipTextBlocks(p)
	if end {
		return i
	}
	return textEnd(p, i, escape)
}

// textEnd is TextEnd from i on, by words. escape is 1 where a backslash before i escapes the byte at i, else 0.
func textEnd(p []byte, i int, escape uint64) int {
	for i < len(p) {
		for ; i <= len(p)-WordBytes; i += WordBytes {
			low, other := lanes(binary.LittleEndian.Uint64(p[i : i+WordBytes]))
			slash := equal(low, backslashes) &^ other
			escaped := slash<<8 | escape<<7
			if slash&escaped != 0 {
				break // a backslash after a backslash
			}
			if quote := equal(low, quotes) &^ other &^ escaped; quote != 0 {
				return i + bits.TrailingZeros64(quote)/8 + 1
			}
			escape = slash >> 63
		}
		for stop := min(i+WordBytes, len(p)); i < stop; i++ {
			switch {
			case escape != 0:
				escape = 0
			case p[i] == '\\':
				escape = 1
			case p[i] == '"':
				return i + 1
			}
		}
	}
	return -1
}

// skipTextBlocks is TextEnd for as much of p as can be looked at in blocks. It returns how far it came, whether a
// backslash before that escapes, and whether it is the end.
func skipTextBlocks(p []byte) (n int, escape uint64, end bool) {
	if !canLook() {
		return 0, 0, false
	}
	var marked [blocks]block
	for ; len(p)-n >= blocks*blockBytes; n += blocks * blockBytes {
		look(&marked, &p[n])
		for i := range marked {
			var marks uint64
			if marks, escape = escapedBytes(marked[i].backslashes, escape); marked[i].quotes&^marks != 0 {
				return n + i*blockBytes + bits.TrailingZeros64(marked[i].quotes&^marks) + 1, 0, true
			}
		}
	}
	return n, escape, false
}
