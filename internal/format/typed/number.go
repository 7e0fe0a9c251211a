package typed

import (
	"math"
	"strconv"
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

// integer reads a literal that isInteger; not all are of 64 bits.
func integer(literal []byte) (int64, bool) {
	if !isInteger(literal) {
		return 0, false
	}
	const safe = 18 // digits
	if len(literal) <= safe {
		negative := literal[0] == '-'
		n := int64(0)
		for _, c := range literal {
			if c != '-' {
				n = n*10 + int64(c-'0')
			}
		}
		if negative {
			n = -n
		}
		return n, true
	}
	n, err := strconv.ParseInt(string(literal), 10, 64)
	return n, err == nil
}

// isNumber says whether a value of JSON is a number.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// appendDouble appends a number in the spelling of encoding/json.
func appendDouble(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// appendLong appends a long of Avro.
func appendLong(dst []byte, n int64) []byte {
	u := uint64(n<<1) ^ uint64(n>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}
