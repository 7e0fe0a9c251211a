package scan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// str returns where the string at i ends, or none.
func str(p []byte, i int) int {
	if i >= len(p) || p[i] != '"' {
		return none
	}
	for i++; i <= len(p)-WordBytes; {
		word := binary.LittleEndian.Uint64(p[i : i+WordBytes])
		low := word &^ tops
		// The top bit of a difference stays only where it is 0, and no lane borrows from the next.
		found := (tops - (low ^ quotes)) | (tops - (low ^ backslashes)) | ^(low + printable)
		if found = found & tops &^ word; found == 0 {
			i += WordBytes
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		if p[i] == '"' {
			return i + 1
		}
		if i+1 < len(p) && p[i] == '\\' && p[i+1] == '"' { // text within text
			i = max(i+2, skipInner(p, i))
			continue
		}
		if i = escape(p, i); i < 0 {
			return none
		}
	}
	return strTail(p, i)
}

// skipInner steps over words of text within text, which has a backslash in nearly every word: to look for the next one
// would stop at each. It stops before a word that has the string's end in it, a control character, or another escape
// than that of a quote. Neither the byte at i nor that at the result is escaped.
func skipInner(p []byte, i int) int {
	escape := uint64(0) // 1 where a backslash before i escapes the byte at i
	for ; i <= len(p)-WordBytes; i += WordBytes {
		low, other := lanes(binary.LittleEndian.Uint64(p[i : i+WordBytes]))
		slash := equal(low, backslashes) &^ other
		quote := equal(low, quotes) &^ other
		control := ^(low + printable) &^ other
		if escaped := slash<<8 | escape<<7; escaped^quote|control != 0 {
			break
		}
		escape = slash >> 63
	}
	return i - int(escape)
}

// strTail is str within the last bytes of the text.
func strTail(p []byte, i int) int {
	for i < len(p) && p[i] != '"' {
		switch {
		case p[i] < ' ':
			return none
		case p[i] != '\\':
			i++
			continue
		}
		if i = escape(p, i); i < 0 {
			return none
		}
	}
	return closing(p, i, '"')
}

// escape returns where the escape at i ends, or none where there is none.
func escape(p []byte, i int) int {
	if i+1 >= len(p) || p[i] != '\\' {
		return none
	}
	switch p[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 <= len(p) && isHex(p[i+2]) && isHex(p[i+3]) && isHex(p[i+4]) && isHex(p[i+5]) {
			return i + 6
		}
	}
	return none
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'f'
}

// none is the end of what is not JSON.
const none = -1

func closing(p []byte, i int, bracket byte) int {
	if i >= len(p) || p[i] != bracket {
		return none
	}
	return i + 1
}

// Space returns where the next byte is that is no white space, from i on.
func Space(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r') {
		i++
	}
	return i
}

func word(p []byte, i int, want string) int {
	if len(p)-i < len(want) || string(p[i:i+len(want)]) != want {
		return none
	}
	return i + len(want)
}

// digits returns where the digits at i end, of which there must be one.
func digits(p []byte, i int) int {
	start := i
	for i < len(p) && '0' <= p[i] && p[i] <= '9' {
		i++
	}
	if i == start {
		return none
	}
	return i
}

// Text is what the string says that is written so, with its quotes. It may share the memory.
func Text(token []byte) []byte {
	if len(token) < len(`""`) {
		return nil // of a text that broke
	}
	inner := token[1 : len(token)-1]
	if isPlain(inner) || bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	return AppendText(nil, token)
}

// isPlain says whether the text is short, in ASCII and without a backslash, as nearly all keys are: it is what it says.
func isPlain(text []byte) bool {
	const short = 64
	if len(text) > short {
		return false
	}
	for _, c := range text {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// AppendText appends what the string says that is written so, with its quotes.
func AppendText(dst, token []byte) []byte {
	if out, simple := unescape(dst, token[1:len(token)-1]); simple {
		return out
	}
	var text string
	if err := json.Unmarshal(token, &text); err != nil {
		return append(dst, token...) // of a text that broke
	}
	return append(dst, text...)
}

// unescape appends the text, unless it is no UTF-8, or there is another escape in it than those of one letter.
func unescape(dst, text []byte) (all []byte, simple bool) {
	start := len(dst)
	dst = slices.Grow(dst, len(text))
	for at := bytes.IndexByte(text, '\\'); at >= 0; at = bytes.IndexByte(text, '\\') {
		if at+1 == len(text) || escaped(text[at+1]) == 0 {
			return nil, false
		}
		dst = append(append(dst, text[:at]...), escaped(text[at+1]))
		text = text[at+2:]
	}
	dst = append(dst, text...)
	return dst, utf8.Valid(dst[start:])
}

// escaped is what the letter stands for after a backslash; 0 for u, and for what cannot be there.
func escaped(letter byte) byte {
	if letter == '"' { // nearly all, in text within text
		return letter
	}
	switch letter {
	case '\\', '/':
		return letter
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// WordBytes are looked at as one word, a lane for each byte. What is found in a lane is marked in its top bit.
const WordBytes = 8

const (
	ones = 0x0101010101010101 // the lowest bit of each lane
	tops = ones << 7          // the highest bit of each lane

	quotes      = ones * '"'
	backslashes = ones * '\\'
	printable   = ones * (0x80 - ' ') // added to a lane of seven bits, reaches the top bit from a space on
)

// QuoteOrBackslash marks both in a word.
func QuoteOrBackslash(word uint64) uint64 {
	low, other := lanes(word)
	return (equal(low, quotes) | equal(low, backslashes)) &^ other
}

// lanes takes the top bits off a word, for equal. other has every bit set that is no mark of an ASCII byte.
func lanes(word uint64) (low, other uint64) { return word &^ tops, word | ^uint64(tops) }

// equal marks the lanes of low that equal those of want, both of seven bits: where the difference is 0, and only there,
// the top bit stays, and no lane borrows from the next. The lower bits mean nothing.
func equal(low, want uint64) uint64 { return tops - (low ^ want) }
