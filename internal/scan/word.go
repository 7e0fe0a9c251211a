package scan

// Eight bytes are looked at as one word, a lane for each byte. What is found in a lane is marked in its top bit.
const (
	wordBytes = 8

	ones = 0x0101010101010101 // the lowest bit of each lane
	tops = ones << 7          // the highest bit of each lane

	quotes      = ones * '"'
	backslashes = ones * '\\'
	printable   = ones * (0x80 - ' ') // added to a lane of seven bits, reaches the top bit from a space on
)

// lanes takes the top bits off a word, for equal. other has every bit set that is no mark of an ASCII byte.
func lanes(word uint64) (low, other uint64) { return word &^ tops, word | ^uint64(tops) }

// equal marks the lanes of low that equal those of want, both of seven bits: where the difference is 0, and only there,
// the top bit stays, and no lane borrows from the next. The lower bits mean nothing.
func equal(low, want uint64) uint64 { return tops - (low ^ want) }
