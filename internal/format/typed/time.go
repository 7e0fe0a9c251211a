package typed

import "time"

const (
	layout  = "2006-01-02T15:04:05"
	seconds = 1_000_000 // microseconds
)

// microseconds reads a time, which may be of other years than have four digits, or finer, and says whether it is
// written as appendTime would.
func microseconds(text []byte, digits int) (micros int64, exact, ok bool) {
	if micros, ok = canonical(text, digits); ok {
		return micros, true, true
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return 0, false, false
	}
	year := at.UTC().Year()
	return at.UnixMicro(), false, year >= 1 && year <= 9999
}

// canonical reads a time in UTC with as many digits after the second, as servers write it.
func canonical(text []byte, digits int) (micros int64, ok bool) {
	n := len(layout)
	want := n + 1
	if digits > 0 {
		want += 1 + digits
	}
	if len(text) != want || text[want-1] != 'Z' {
		return 0, false
	}
	fraction := 0
	if digits > 0 {
		if fraction, ok = decimal(text[n+1 : want-1]); !ok || text[n] != '.' {
			return 0, false
		}
		for range 6 - digits {
			fraction *= 10
		}
	}
	at, ok := date(text[:n])
	return at*seconds + int64(fraction), ok
}

// date reads a time of seconds in UTC.
func date(text []byte) (unix int64, ok bool) {
	if text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		return 0, false
	}
	var part [6]int
	for i, at := range [6][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		if part[i], ok = decimal(text[at[0]:at[1]]); !ok {
			return 0, false
		}
	}
	when := time.Date(part[0], time.Month(part[1]), part[2], part[3], part[4], part[5], 0, time.UTC)
	year, month, day := when.Date()
	same := year == part[0] && int(month) == part[1] && day == part[2] && when.Hour() == part[3] && when.Minute() == part[4] &&
		when.Second() == part[5]
	return when.Unix(), same && year > 0
}

func decimal(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// appendTime appends a time with as many digits after the second.
func appendTime(dst []byte, micros int64, digits int) []byte {
	at := time.UnixMicro(micros).UTC()
	if digits == 0 {
		return at.AppendFormat(dst, layout+"Z")
	}
	return at.AppendFormat(dst, (layout + ".000000")[:len(layout)+1+digits]+"Z")
}
