package encode

import "encoding/json"

// appendString appends s as a JSON string. Nearly all names are plain ASCII and are copied; the rest takes the
// library's way.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // json.Marshal cannot fail on a string
				panic(err)
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendOptional appends name and value, or nothing where the value is empty: CloudEvents knows no empty attribute.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendString(append(dst, name...), value)
}
