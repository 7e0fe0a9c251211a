package change

import "testing"

// TestI4ANoteSaysNothingOfWhatItStandsFor: not that no watch saw it, not what it was a patch of.
func TestI4ANoteSaysNothingOfWhatItStandsFor(t *testing.T) {
	rec := &Record{
		Stream: pods(), Op: Deleted, Key: Key{Name: "web"}, UID: "u-1", ResourceVersion: "7", Object: []byte(`{}`), Before: []byte(`{}`),
		FinalStateUnknown: true, Patch: []byte(`[]`), Base: "6", Changed: []byte(`[]`), ChangedCut: true, Actor: []byte(`[]`), Involved: []byte(`{}`),
	}
	note := NoteOf(rec, "too_large", "letter")
	if note.Op != Gap || note.Object != nil || note.Before != nil || note.FinalStateUnknown || note.Patch != nil || note.Base != "" ||
		note.Changed != nil || note.ChangedCut || note.Actor != nil || note.Involved != nil {
		t.Errorf("the note is %+v", note)
	}
	if note.Key != rec.Key || note.UID != rec.UID || note.Snapshot.Reason != Policy || note.Remarks.Letter != "letter" {
		t.Errorf("the note is %+v of %+v, %+v", note, note.Snapshot, note.Remarks)
	}
}
