package line

import (
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// kept is a record of the watch whose object is kept.
func kept(name string, version int) *change.Record {
	stream, text := pods(), strconv.Itoa(version)
	return &change.Record{
		Stream: &stream, Op: change.Updated, Key: change.Key{Name: name}, UID: "u", ResourceVersion: text, Object: []byte(text),
		Keep: true,
	}
}

// A record that is saved takes nothing of the newer one with it that is not.
func TestI5SavingARecordLeavesTheNewerOneNoted(t *testing.T) {
	images := NewImages(nil) // nothing is to be read from the state
	older, newer := kept("a", 1), kept("a", 2)
	images.note(older)
	images.note(newer)
	images.saved([]*change.Record{older})
	if last, found, err := images.Last("pods", older.Key); err != nil || !found || string(last.Object) != "2" {
		t.Errorf("last is %s, %t, %v, want 2", last.Object, found, err)
	}
	images.saved([]*change.Record{newer})
	if n := len(images.pending["pods"]); n > 0 {
		t.Errorf("%d records are noted although all are saved (I6)", n)
	}
}

// Of what the line has saved nothing is noted any more, whatever became of the objects.
func TestI6NothingIsNotedThatIsSaved(t *testing.T) {
	images := NewImages(nil)
	line := New(nil, Options{Images: images})
	deleted, hidden := kept("b", 3), kept("c", 4)
	deleted.Op, hidden.Filtered, hidden.Object = change.Deleted, true, nil
	for _, rec := range []*change.Record{kept("a", 1), kept("a", 2), deleted, hidden} {
		if err := line.Push(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(images.pending["pods"]); n != 2 {
		t.Errorf("%d objects are noted, want those of a and b", n)
	}
	for _, batch := range line.Advance() {
		line.Saved(batch)
	}
	if n := len(images.pending["pods"]); n > 0 {
		t.Errorf("%d records are noted although all are saved", n)
	}
}
