package scan

import (
	"encoding/binary"
	"math/bits"
)

// str returns where the string at i ends, or none.
func str(p []byte, i int) int {
	if i >= len(p) || p[i] != '"' {
		return none
	}
	for i++; i <= len(p)-wordBytes; {
		word := binary.LittleEndian.Uint64(p[i : i+wordBytes])
		low := word &^ tops
		// The top bit of a difference stays only where it is 0, and no lane borrows from the next.
		found := (tops - (low ^ quotes)) | (tops - (low ^ backslashes)) | ^(low + printable)
		if found = found & tops &^ word; found == 0 {
			i += wordBytes
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
	for ; i <= len(p)-wordBytes; i += wordBytes {
		low, other := lanes(binary.LittleEndian.Uint64(p[i : i+wordBytes]))
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
