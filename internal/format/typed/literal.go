package typed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"
)

// isInteger says whether the literal is an integer as one is written that was read.
func isInteger(literal []byte) bool {
	digits := literal
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || digits[0] == '0' && len(literal) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// isNumber says whether a value of JSON is a number.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// appendDouble appends a number in the spelling of encoding/json.
func appendDouble(dst []byte, f float64) []byte {
	text, _ := json.Marshal(f) // of a number it cannot fail
	return append(dst, text...)
}

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

const layout = "2006-01-02T15:04:05"

// microseconds reads a time, which may be of other years than have four digits, or finer, and says whether it is
// written as appendTime would.
func microseconds(text []byte, digits int) (micros int64, exact, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0, false, false
	}
	var again [len(layout) + len(".000000Z")]byte
	year := at.UTC().Year()
	return at.UnixMicro(), bytes.Equal(appendTime(again[:0], at.UnixMicro(), digits), text), year >= 1 && year <= 9999
}

// appendTime appends a time with as many digits after the second.
func appendTime(dst []byte, micros int64, digits int) []byte {
	at := time.UnixMicro(micros).UTC()
	if digits == 0 {
		return at.AppendFormat(dst, layout+"Z")
	}
	return at.AppendFormat(dst, (layout + ".000000")[:len(layout)+1+digits]+"Z")
}
