package scan

import "math/bits"

// block is what 64 bytes have in them, a bit for each byte, the first in the lowest.
type block struct{ quotes, backslashes, openers, closers uint64 }

const (
	blockBytes = 64
	blocks     = 4 // so many are looked at in one call
	evens      = 0x5555555555555555
)

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

// parity has in each bit whether an odd number of bits is set up to it: the inside of strings, of their quotes.
func parity(x uint64) uint64 {
	for shift := 1; shift < 64; shift *= 2 {
		x ^= x << shift
	}
	return x
}

// escapedBytes marks the bytes that a backslash escapes. carried is 1 if the block before ends with a backslash that
// escapes; carry is the same for the next block. In a row of backslashes each second one is escaped; where a row begins
// on an odd bit, a carry through its bits turns even into odd (Langdale and Lemire, Parsing Gigabytes of JSON per
// Second, 3.1.1).
func escapedBytes(backslashes, carried uint64) (marked, carry uint64) {
	backslashes &^= carried
	behind := backslashes<<1 | carried
	ended, carry := bits.Add64(backslashes&^evens&^behind, backslashes, 0)
	return (evens ^ ended<<1) & behind, carry
}
