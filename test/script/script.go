// Package script runs tests whose cases and outcomes are a file.
package script

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Run holds what of says of each text of the file against what is below it, or writes that where UPDATE_GOLDEN is set.
// A case is a line with ## and its name, the text, => and what is said. A text that is not plain is in quotes.
func Run(t *testing.T, path string, of func(text string) string) {
	t.Helper()
	cases, err := os.ReadFile(path)
	Must(t, err)
	var have []string
	for one := range strings.SplitSeq(strings.TrimSpace(string(cases)), "\n\n") {
		head, want, _ := strings.Cut(one, "\n=>")
		name, text, _ := strings.Cut(head, "\n")
		if unquoted, err := strconv.Unquote(text); err == nil {
			text = unquoted
		}
		got := strings.TrimRight(" "+of(text+"\n"), " \n")
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		have = append(have, head+"\n=>"+got+"\n")
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		Must(t, os.WriteFile(path, []byte(strings.Join(have, "\n")), 0o644))
	}
}

// Must ends the test where there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
