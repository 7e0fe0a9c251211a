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

// unescape appends the text, unless it is no UTF-8, or there is another escape in it than those of one letter. It
// writes whole words, of which what is behind a backslash is written again.
func unescape(dst, text []byte) (all []byte, simple bool) {
	n, i, other := len(dst), 0, uint64(0)
	dst = slices.Grow(dst, len(text)+wordBytes)
	dst = dst[:n+len(text)+wordBytes]
	for i < len(text) {
		if i <= len(text)-wordBytes {
			word := binary.LittleEndian.Uint64(text[i : i+wordBytes])
			binary.LittleEndian.PutUint64(dst[n:n+wordBytes], word)
			other |= word
			found := (tops - (word&^tops ^ backslashes)) & tops &^ word
			stop := bits.TrailingZeros64(found) / 8 // of none, the whole word
			if n, i = n+stop, i+stop; found == 0 {
				continue
			}
		}
		dst[n] = text[i]
		other |= uint64(text[i])
		if text[i] == '\\' {
			if i++; i == len(text) || escaped(text[i]) == 0 {
				return nil, false
			}
			dst[n] = escaped(text[i])
		}
		n, i = n+1, i+1
	}
	return dst[:n], other&tops == 0 || utf8.Valid(text)
}

// escaped is what the letter stands for behind a backslash; 0 for u, and for what cannot be there.
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
