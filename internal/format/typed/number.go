package typed

import "encoding/json"

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
