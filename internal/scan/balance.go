package scan

import "encoding/binary"

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
	for i := 0; i < len(p); {
		i += b.skipWords(p[i:])
		for stop := min(i+wordBytes, len(p)); i < stop; i++ {
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
	for ; i <= len(p)-wordBytes; i += wordBytes {
		low, other := lanes(binary.LittleEndian.Uint64(p[i : i+wordBytes]))
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
