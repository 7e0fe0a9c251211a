package config

import (
	"slices"
	"strings"
	"unicode"
)

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// consistsOf says whether text is not empty and holds nothing but the allowed characters.
func consistsOf(text, allowed string) bool {
	return text != "" && strings.Trim(text, allowed) == ""
}

func isWord(text string) bool { return consistsOf(text, lower+upper+digits+"-_") }

// isBlank says whether the character could hide: in a name it is a mistake, mostly a newline at the end of a file.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Closest returns the one of the names that key was probably meant to be, "" where none is near.
func Closest(key string, names []string) string {
	best, near := "", min(3, 1+(len(key)+1)/3) // of a short name, half would be another one
	for _, name := range names {
		d := distance(strings.ToLower(key), strings.ToLower(name))
		if d < near && d < len(name) {
			best, near = name, d
		}
	}
	return best
}

// distance is the number of characters to insert, delete, replace or swap with the next one to make b of a. Long
// texts are as far apart as can be, which bounds the work: no key is that long.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			rows[i][j] = step(rows, a[:i], b[:j])
		}
	}
	return rows[len(a)][len(b)]
}

func step(rows [][]int, a, b string) int {
	i, j := len(a), len(b)
	if i == 0 || j == 0 {
		return i + j
	}
	if a[i-1] == b[j-1] {
		return rows[i-1][j-1]
	}
	least := min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		least = min(least, rows[i-2][j-2])
	}
	return least + 1
}

// join is the names as a sentence has them, in alphabetical order.
func join(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
