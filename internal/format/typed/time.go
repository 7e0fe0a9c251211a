package typed

import (
	"bytes"
	"time"
)

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
