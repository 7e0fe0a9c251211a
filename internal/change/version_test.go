package change

import (
	"strconv"
	"strings"
	"testing"
)

func FuzzVersionsCompareAsNumbers(f *testing.F) {
	f.Add(uint64(9), uint64(10))
	f.Add(uint64(0), uint64(18446744073709551615))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		want := 0
		if a < b {
			want = -1
		} else if a > b {
			want = 1
		}
		got := CompareVersions(strconv.FormatUint(a, 10), strconv.FormatUint(b, 10))
		if sign(got) != want {
			t.Fatalf("CompareVersions(%d, %d) = %d, want sign %d", a, b, got, want)
		}
	})
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestNoVersionIsOlderThanAny(t *testing.T) {
	if CompareVersions("", "0") >= 0 {
		t.Error(`"" is not older than "0"`)
	}
}

// TestVersionsAreDecimals of any length (KEP-5504).
func TestVersionsAreDecimals(t *testing.T) {
	for version, want := range map[string]bool{
		"1": true, "10": true, "18446744073709551616": true, strings.Repeat("9", 100): true,
		"": false, "0": false, "01": false, "-1": false, "1.5": false, "abc": false, "1a": false, "١": false,
	} {
		if got := IsVersion(version); got != want {
			t.Errorf("IsVersion(%q) is %t", version, got)
		}
	}
}

// TestI2AVersionMayNotBeComplete: a watch from directly below it sees everything at it again.
func TestI2AVersionMayNotBeComplete(t *testing.T) {
	for version, want := range map[string]string{
		"100": "99", "1": "1" /* a watch from 0 would be a list */, "opaque": "opaque", "1000": "999", "010": "010",
		"18446744073709551616":           "18446744073709551615", // above 2^64
		"100000000000000000000000000000": "99999999999999999999999999999",
	} {
		if got := VersionBelow(version); got != want {
			t.Errorf("below %q is %q, want %q", version, got, want)
		}
	}
}

func TestOpsReadBack(t *testing.T) {
	for op := Added; op <= Gap; op++ {
		if got := ParseOp(op.String()); got != op {
			t.Errorf("ParseOp(%q) = %d, want %d", op, got, op)
		}
	}
	if got := ParseOp("unknown"); got != 0 {
		t.Errorf(`ParseOp("unknown") = %d, want 0`, got)
	}
}

func TestKeysReadBack(t *testing.T) {
	for _, key := range []Key{{"shop", "web"}, {"", "system:node:a b"}, {"", ""}} {
		if got := ParseKey(key.String()); got != key {
			t.Errorf("ParseKey(%q) = %+v, want %+v", key, got, key)
		}
	}
}
