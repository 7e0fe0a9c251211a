package scan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"unicode/utf8"
)

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
	start, n, i := len(dst), len(dst), 0
	dst = slices.Grow(dst, len(text)+wordBytes)
	dst = dst[:n+len(text)+wordBytes]
	for {
		if n, i = unescapeWords(dst, text, n, i); i == len(text) {
			return dst[:n], utf8.Valid(dst[start:n])
		}
		dst[n] = text[i]
		if text[i] == '\\' {
			if i++; i == len(text) || escaped(text[i]) == 0 {
				return nil, false
			}
			dst[n] = escaped(text[i])
		}
		n, i = n+1, i+1
	}
}

// unescapeWords writes the words of the text from i on to dst at n, without the backslash before each quote. It stops
// in a word with another escape, and before the text's last bytes. It returns how far it came, in both; the byte that
// is read next is not escaped.
func unescapeWords(dst, text []byte, n, i int) (written, read int) {
	escape := uint64(0) // 1 where a backslash before i escapes the byte at i
	for ; i <= len(text)-wordBytes; i += wordBytes {
		word := binary.LittleEndian.Uint64(text[i : i+wordBytes])
		low, other := lanes(word)
		slash := equal(low, backslashes) &^ other
		if escaped := slash<<8 | escape<<7; escaped&^(equal(low, quotes)&^other) != 0 {
			if escape == 0 { // up to the first backslash
				binary.LittleEndian.PutUint64(dst[n:n+wordBytes], word)
				n, i = n+bits.TrailingZeros64(slash)/8, i+bits.TrailingZeros64(slash)/8
			}
			break
		}
		escape = slash >> 63
		stay := wordBytes - bits.OnesCount64(slash)
		for slash != 0 { // the last one first
			from := bits.Len64(slash) - 8
			before := uint64(1)<<from - 1
			word = word&before | word>>8&^before
			slash &= before
		}
		binary.LittleEndian.PutUint64(dst[n:n+wordBytes], word)
		n += stay
	}
	return n, i - int(escape)
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
