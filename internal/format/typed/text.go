package typed

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// appendString appends a string as JSON.
func appendString(dst, text []byte) []byte {
	quoted, _ := json.Marshal(string(text)) // of a text it cannot fail
	return append(dst, quoted...)
}

// ascii writes characters of a JSON text as codes that a terminal may act on, which are all but those of ASCII.
func ascii(text []byte) []byte {
	var dst []byte
	for _, r := range string(text) {
		if r < 0x7f {
			dst = append(dst, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			dst = fmt.Appendf(dst, `\u%04x`, unit)
		}
	}
	return dst
}
