package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that a file and the JSON form write as "10h".
type Duration time.Duration

// Size is a number of bytes.
type Size int64

type unit struct {
	suffix string
	bytes  int64
}

// units are the suffixes of a size as Kubernetes writes quantities, binary ones first and the largest first, which is
// the order in which String wants to try them.
func units() []unit {
	return []unit{
		{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
		{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3},
	}
}

// parseSize reads a whole number of bytes with or without a suffix: "64Mi", "10M", "4096".
func parseSize(text string) (Size, error) {
	number, factor := text, int64(1)
	for _, u := range units() {
		if rest, found := strings.CutSuffix(text, u.suffix); found {
			number, factor = rest, u.bytes
			break
		}
	}
	// ParseUint, unlike ParseInt, takes no sign.
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("parse size %q: want a whole number with one of Ki, Mi, Gi, Ti, k, M, G, T", text)
	}
	if int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("parse size %q: it is too large", text)
	}
	return Size(int64(n) * factor), nil
}

// String writes the size with the suffix that leaves the smallest whole number.
func (s Size) String() string {
	number, suffix := int64(s), ""
	for _, u := range units() {
		if n := int64(s) / u.bytes; int64(s)%u.bytes == 0 && n != 0 && n < number {
			number, suffix = n, u.suffix
		}
	}
	return strconv.FormatInt(number, 10) + suffix
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// parseDuration reads a length of time as Go writes it, "10h" or "1h30m". There is none before now.
func parseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("parse duration %q: want a length of time such as 10h or 1h30m", text)
	}
	return Duration(d), nil
}

// String writes the duration without the parts that are zero at its end: "10h", not "10h0m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes the duration as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
