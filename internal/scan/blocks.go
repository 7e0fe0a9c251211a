package scan

import "math/bits"

// block is what 64 bytes have in them, a bit for each byte, the first in the lowest.
type block struct{ quotes, backslashes, openers, closers uint64 }

const (
	blockBytes = 64
	blocks     = 4 // so many are looked at in one call
	evens      = 0x5555555555555555
)

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
