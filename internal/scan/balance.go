package scan

import (
	"encoding/binary"
	"math/bits"
)

const (
	openers   = ones * '{' // and '[' with lowerCase set
	closers   = ones * '}' // and ']' with lowerCase set
	lowerCase = ones * 0x20
)

// sums returns in each lane how many lanes up to it are marked; the highest lane counts them all.
func sums(marked uint64) uint64 { return marked >> 7 * ones }

// Balance finds the end of a JSON value in brackets, in as many pieces as it comes. It has no recursion, and nearly no
// branch that depends on the text: with short strings every such branch is a wrong guess.
type Balance struct {
	depth  uint64 // of brackets open
	quoted uint64 // every bit set inside a string, else 0
	escape uint64 // 1 after a backslash that escapes the byte to come, else 0
}

// Enter starts after an opening bracket.
func (b *Balance) Enter() { *b = Balance{depth: 1} }

// Skip goes on with p and returns the length of what of it belongs to the value, or -1 if the end is not in p.
func (b *Balance) Skip(p []byte) int {
	i, end := b.skipBlocks(p)
	if end {
		return i
	}
	return b.skipRest(p, i)
}

// skipBlocks is Skip for as much of p as can be looked at in blocks, where the processor can: the loop of skipWords,
// with eight times as many bytes in each turn. It returns how far it came, and whether that is the end.
func (b *Balance) skipBlocks(p []byte) (n int, end bool) {
	if !canLook() {
		return 0, false
	}
	var marked [blocks]block
	for ; len(p)-n >= blocks*blockBytes; n += blocks * blockBytes {
		look(&marked, &p[n])
		for i := range marked {
			if at := b.skipBlock(&marked[i]); at > 0 {
				return n + i*blockBytes + at, true
			}
		}
	}
	return n, false
}

// skipBlock steps over one block. If the value ends in it, it returns how many bytes belong to the value, else 0.
func (b *Balance) skipBlock(m *block) int {
	quotes := m.quotes
	if m.backslashes|b.escape != 0 {
		var marked uint64
		marked, b.escape = escapedBytes(m.backslashes, b.escape)
		quotes &^= marked
	}
	inside := parity(quotes) ^ b.quoted
	openers, closers := m.openers&^inside, m.closers&^inside
	b.quoted = -(inside >> 63)
	if closed := uint64(bits.OnesCount64(closers)); closed < b.depth {
		b.depth += uint64(bits.OnesCount64(openers)) - closed
		return 0
	}
	for rest := openers | closers; rest != 0; rest &= rest - 1 {
		if openers&rest&-rest != 0 {
			b.depth++
		} else if b.depth--; b.depth == 0 {
			return bits.TrailingZeros64(rest) + 1
		}
	}
	return 0
}

// skipRest is Skip from i on, by words.
func (b *Balance) skipRest(p []byte, i int) int {
	for i < len(p) {
		i += b.skipWords(p[i:])
		for stop := min(i+WordBytes, len(p)); i < stop; i++ {
			if b.Step(p[i]) {
				return i + 1
			}
		}
	}
	return -1
}

// skipWords steps over the words of p that cannot hold the end, as they close fewer brackets than are open, up to one
// where a backslash follows a backslash. It calls nothing, so that all it needs stays in registers.
func (b *Balance) skipWords(p []byte) int {
	depth, quoted, escape := b.depth, b.quoted, b.escape
	i := 0
	for ; i <= len(p)-WordBytes; i += WordBytes {
		low, other := lanes(binary.LittleEndian.Uint64(p[i : i+WordBytes]))
		slash := equal(low, backslashes) &^ other
		escaped := slash<<8 | escape<<7
		if slash&escaped != 0 {
			break
		}
		// After an odd number of quotes is the inside of a string.
		count := sums(equal(low, quotes) &^ other &^ escaped)
		inside := (count^quoted)<<7 | other
		closed := sums(equal(low|lowerCase, closers)&^inside) >> 56
		if closed >= depth {
			break
		}
		depth += sums(equal(low|lowerCase, openers)&^inside)>>56 - closed
		quoted ^= -(count >> 56 & 1)
		escape = slash >> 63
	}
	b.depth, b.quoted, b.escape = depth, quoted, escape
	return i
}

// Step takes one byte and says whether it ends the value.
func (b *Balance) Step(c byte) bool {
	escaped := b.escape != 0
	b.escape = 0
	switch {
	case c == '\\' && !escaped:
		b.escape = 1
	case c == '"' && !escaped:
		b.quoted = ^b.quoted
	case b.quoted != 0:
	case c == '{' || c == '[':
		b.depth++
	case c == '}' || c == ']':
		b.depth--
		return b.depth == 0
	}
	return false
}

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
