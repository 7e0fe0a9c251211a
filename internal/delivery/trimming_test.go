package delivery

import (
	"bytes"
	"testing"
)

// TestTrimmingTakesOneThingAfterTheOther: the state before, then what each cut takes away, until nothing is left to
// take; then it has the record as it came. Another record begins anew.
func TestTrimmingTakesOneThingAfterTheOther(t *testing.T) {
	without := func(letter string) Trim {
		return Trim{Path: "." + letter, Cut: func(object []byte) ([]byte, error) { return bytes.ReplaceAll(object, []byte(letter), nil), nil }}
	}
	cuts := &trimming{out: newOutgoing(&Sink{Encoder: paired{}}, "u"), trims: []Trim{without("a"), without("x"), without("b")}}
	first := numbered(1, "aabbc")
	first.Before = []byte("before")
	rec := first
	for _, want := range []struct{ object, trimmed string }{{"aabbc", ""}, {"bbc", ".a"}, {"c", ".a,.b"}} {
		if rec = cuts.smaller(t.Context(), rec); rec == nil {
			t.Fatalf("nothing is taken away, want %q", want.object)
		}
		if string(rec.Object) != want.object || rec.Remarks.Trimmed != want.trimmed || !rec.Remarks.BeforeOmitted || rec.Before != nil {
			t.Errorf("it is %q with %+v, want %q", rec.Object, rec.Remarks, want.object)
		}
	}
	if again := cuts.smaller(t.Context(), rec); again != nil {
		t.Errorf("there is more to take: %q", again.Object)
	}
	if cuts.whole(rec) != first || cuts.isOf(rec) {
		t.Error("the record is not the one that came, or is not forgotten")
	}
	second := numbered(2, "a1")
	if rec = cuts.smaller(t.Context(), second); rec == nil || string(rec.Object) != "1" || cuts.whole(rec) != second {
		t.Errorf("the next record became %+v", rec)
	}
}
