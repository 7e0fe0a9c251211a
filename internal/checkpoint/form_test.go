package checkpoint

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI9AChunkSaysTheFormOfItsRecords, each by its stream; one of an earlier version does not know it.
func TestI9AChunkSaysTheFormOfItsRecords(t *testing.T) {
	s := open(t, t.TempDir())
	records := []*change.Record{object(change.Added, "a", "u", "1"), {Stream: secrets, Op: change.Added, Key: change.Key{Name: "s"}, Object: []byte(`{}`)}}
	forms := func() [2]string {
		t.Helper()
		value, err := s.Encode(records)
		must(t, err)
		read, err := s.codec.decode(nil, value)
		must(t, err)
		return [2]string{read[0].Form, read[1].Form}
	}
	if got := forms(); got != [2]string{} {
		t.Errorf("forms that nobody told are %q", got)
	}
	s.SetForms(func(stream *change.Stream) string { return "of " + stream.String() })
	if got := forms(); got != [2]string{"of pods", "of shop/secrets"} {
		t.Errorf("the forms are %q", got)
	}
}
