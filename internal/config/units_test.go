package config

import (
	"math"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "4096": 4096, "64Mi": 64 << 20, "1Ki": 1 << 10, "2Gi": 2 << 30, "1Ti": 1 << 40,
		"3k": 3000, "5M": 5e6, "7G": 7e9, "1T": 1e12, "9223372036854775807": math.MaxInt64,
	} {
		got, err := parseSize(text)
		if err != nil || got != want {
			t.Errorf("%s: have %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "Mi", "-1", "+1", "1.5Gi", "1m", "1 Mi", "64MiB", "1e3", "9223372036854775808", "8388608Ti", "true"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: have %d, want an error", text, got)
		}
	}
}

func TestSizeString(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0", 1: "1", 1000: "1k", 1024: "1Ki", 1536: "1536", 64 << 20: "64Mi", 1e9: "1G", 1 << 40: "1Ti", 1024000: "1000Ki", 3 << 30: "3Gi",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d: have %s, want %s", int64(size), got, want)
		}
		if back, err := parseSize(size.String()); err != nil || back != size {
			t.Errorf("%s: read back %d, %v", size, back, err)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"10h": "10h", "90m": "1h30m", "0": "0s", "61s": "1m1s", "2m": "2m", "1h5s": "1h0m5s", "100ms": "100ms", "20m": "20m", "10h10m": "10h10m",
	} {
		got, err := parseDuration(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: have %s, %v, want %s", text, got, err, want)
		}
		if back, err := parseDuration(want); err != nil || back != got {
			t.Errorf("%s: read back %s, %v", want, time.Duration(back), err)
		}
	}
	for _, text := range []string{"", "10", "-1h", "7d", "1 h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q: have %s, want an error", text, got)
		}
	}
}
