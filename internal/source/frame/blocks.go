package frame

import "math/bits"

// block is what 64 bytes have in them, a bit for each byte, the first in the lowest.
type block struct{ quotes, backslashes, openers, closers uint64 }

const (
	blockBytes = 64
	blocks     = 4 // so many are looked at in one call
	evens      = 0x5555555555555555
)

// skipBlocks is skip for as much of p as can be looked at in blocks, where the processor can: the loop of skipWords,
// with eight times as many bytes in each turn. It returns how far it came, and whether that is the end.
func (b *balance) skipBlocks(p []byte) (n int, end bool) {
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

// skipTextBlocks is skipEscaped for as much of p as can be looked at in blocks. What it leaves, a backslash before it
// may escape.
func (b *balance) skipTextBlocks(p []byte) (n int, end bool) {
	if !canLook() {
		return 0, false
	}
	var marked [blocks]block
	for ; len(p)-n >= blocks*blockBytes; n += blocks * blockBytes {
		look(&marked, &p[n])
		for i := range marked {
			m := &marked[i]
			if quotes := m.quotes &^ b.escaped(m.backslashes); quotes != 0 {
				return n + i*blockBytes + bits.TrailingZeros64(quotes) + 1, true
			}
		}
	}
	return n, false
}

// skipBlock steps over one block. If the value ends in it, it returns how many bytes belong to the value, else 0.
func (b *balance) skipBlock(m *block) int {
	quotes := m.quotes
	if m.backslashes|b.escape != 0 {
		quotes &^= b.escaped(m.backslashes)
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

// parity has in each bit whether an odd number of bits is set up to it: the inside of strings, of their quotes.
func parity(x uint64) uint64 {
	for shift := 1; shift < 64; shift *= 2 {
		x ^= x << shift
	}
	return x
}

// escaped marks the bytes that a backslash escapes. In a row of backslashes each second one is escaped; where a row
// begins on an odd bit, a carry through its bits turns even into odd (Langdale and Lemire, Parsing Gigabytes of JSON
// per Second, 3.1.1).
func (b *balance) escaped(backslashes uint64) uint64 {
	backslashes &^= b.escape
	behind := backslashes<<1 | b.escape
	ended, carry := bits.Add64(backslashes&^evens&^behind, backslashes, 0)
	b.escape = carry
	return (evens ^ ended<<1) & behind
}
