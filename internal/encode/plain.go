package encode

import words "encoding/binary"

// Eight bytes are looked at as one word.
const (
	ones = 0x0101010101010101 // the lowest bit of each byte
	tops = ones << 7          // the highest bit of each byte
)

// isPlain says whether all bytes stand for themselves in a JSON string: printable ASCII, neither quote nor backslash.
func isPlain(text []byte) bool {
	for len(text) >= 8 {
		if !isPlainWord(words.LittleEndian.Uint64(text)) {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// isPlainWord is isPlain for eight bytes. Where all are ASCII, no sum carries into the next byte: adding 0x60 sets the
// top bit of all but control characters, adding 1 that of 0x7f, and adding 0x7f to a difference that of all but 0.
func isPlainWord(word uint64) bool {
	wrong := word | (word + ones) | ^(word + ones*0x60) | ^((word ^ ones*'"') + ones*0x7f) | ^((word ^ ones*'\\') + ones*0x7f)
	return wrong&tops == 0
}
