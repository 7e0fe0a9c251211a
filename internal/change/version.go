package change

import "strings"

// CompareVersions orders two resourceVersions of one stream: negative, zero or positive as a is older than, the same
// as, or newer than b. Both are decimal numbers without leading zeros (KEP-5504); "" is older than all. They are
// compared as text, so that no width overflows.
func CompareVersions(a, b string) int {
	switch {
	case len(a) != len(b):
		return len(a) - len(b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// IsVersion says whether v can be ordered: a positive decimal number of any length, without leading zeros (KEP-5504).
func IsVersion(v string) bool {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return v != "" && v[0] != '0'
}

// VersionBelow is the resourceVersion directly before v, from which a watch sees everything at v again. It returns
// v itself where v is no such version, or 1: a watch from 0 is a list.
func VersionBelow(v string) string {
	if !IsVersion(v) || v == "1" {
		return v
	}
	below := []byte(v)
	last := len(below) - 1
	for ; below[last] == '0'; last-- {
		below[last] = '9'
	}
	below[last]--
	return strings.TrimPrefix(string(below), "0")
}

// VersionAbove is the one above a resourceVersion.
func VersionAbove(v string) string {
	above := []byte(v)
	for at := len(above) - 1; at >= 0; at-- {
		if above[at] != '9' {
			above[at]++
			return string(above)
		}
		above[at] = '0'
	}
	return "1" + string(above)
}
