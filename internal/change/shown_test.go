package change

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestALongNameIsShownInShort: with the hash that its note has, by which it is told from others, and once only.
func TestALongNameIsShownInShort(t *testing.T) {
	const most = MaxNamed
	for _, name := range []string{"web", strings.Repeat("n", most)} {
		if shown := Shown(name, most); shown != name {
			t.Errorf("%q is shown as %q", name, shown)
		}
	}
	for _, letter := range []string{"n", "é", "漢", "𝄞"} {
		key := Key{Namespace: "shop", Name: "begin" + strings.Repeat(letter, 300_000) + "end"}
		note := NoteOf(&Record{Stream: pods(), Key: key}, "invalid", "").Key.Name
		name, ok := strings.CutPrefix(key.Shown(), "shop/")
		if !ok || len(name) > most || !utf8.ValidString(name) || !strings.HasPrefix(name, "begin"+letter) ||
			!strings.HasSuffix(name, letter+"end") || !strings.Contains(name, note) {
			t.Errorf("shown as %q, its note is %q", name, note)
		}
		if again := Shown(name, most); again != name {
			t.Errorf("shown twice as %q", again)
		}
	}
}
