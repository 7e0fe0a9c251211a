package signal

import (
	"fmt"
	"strings"
	"testing"
)

// TestI6ABookKnowsTheNewestIDs, over a restart, and is never larger than some.
func TestI6ABookKnowsTheNewestIDs(t *testing.T) {
	var b Book
	for i := range 3 * mostIDs {
		before := b
		b = b.With(fmt.Sprint(i))
		if before.Has(fmt.Sprint(i)) || !b.Has(fmt.Sprint(i)) {
			t.Fatalf("id %d is known before it came, or not behind that", i)
		}
	}
	text := b.Encode()
	if len(text) > 2*mostIDs*idSize {
		t.Errorf("a book takes %d bytes", len(text))
	}
	again, err := ParseBook(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * mostIDs {
		if known := again.Has(fmt.Sprint(i)); known != (i >= 2*mostIDs) {
			t.Errorf("id %d: known is %t", i, known)
		}
	}
}

func TestWhoHasNoIDIsNeverKnown(t *testing.T) {
	b, err := ParseBook(nil)
	if err != nil {
		t.Fatal(err)
	}
	if b = b.With(""); b.Has("") || len(b.IDs) > 0 {
		t.Errorf("the book is %+v", b)
	}
	if _, err := ParseBook([]byte(`{"ids":7}`)); err == nil || !strings.HasPrefix(err.Error(), "read what was asked for") {
		t.Errorf("a damaged book is read: %v", err)
	}
}
