package typed

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendString appends a string as JSON, in the spelling of encoding/json.
func appendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if isPlain(c) {
				i++
				continue
			}
			dst = appendEscape(append(dst, text[start:i]...), c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, text[start:i]...), `\ufffd`...)
			start = i + n
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, text[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			start = i + n
		}
		i += n
	}
	return append(append(dst, text[start:]...), '"')
}

func isPlain(c byte) bool {
	return c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// ascii writes characters of a JSON text as codes that a terminal may act on, which are all but those of ASCII.
func ascii(text []byte) []byte {
	var dst []byte
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			dst = append(dst, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return dst
}
