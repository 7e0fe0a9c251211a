package delivery

import (
	"errors"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// drawer keeps letters once its disk, which fails at first, has space. "full" is its bound.
type drawer struct {
	failures int
	full     bool
	kept     []string
	held     []string
	ended    bool
}

func (d *drawer) Keep(rec *change.Record, msg *sink.Message, _ *sink.RejectedError) (string, error) {
	if d.failures > 0 {
		d.failures--
		return "", errors.New("no space left on device")
	}
	if d.full {
		return "", nil
	}
	d.kept = append(d.kept, msg.ID)
	return "letter", nil
}

func (d *drawer) Claim(string) (bool, error) { return true, nil }

func (d *drawer) Settle() (func(string), func() error, error) {
	return func(id string) { d.held = append(d.held, id) }, func() error { d.ended = true; return nil }, nil
}

// TestI4ALetterIsKeptOnceThereIsSpace, and the observer is told of each failure, and of one that the bound drops.
func TestI4ALetterIsKeptOnceThereIsSpace(t *testing.T) {
	d, notKept, dropped := &drawer{failures: 1}, 0, 0
	k := deadLetters{sink: "out", to: d, out: newOutgoing(&Sink{Encoder: paired{}}, "u"), observer: Observer{
		NotKept: func(string, error) { notKept++ }, Dropped: func(string) { dropped++ },
	}}
	rec := numbered(1, "{}")
	id, err := k.keep(t.Context(), rec, &sink.RejectedError{})
	if err != nil || id != "letter" || notKept != 1 || !slices.Equal(d.kept, []string{rec.ID("u").String()}) {
		t.Errorf("kept %q as %q after %d failures, %v", d.kept, id, notKept, err)
	}
	d.full = true
	if id, err := k.keep(t.Context(), rec, &sink.RejectedError{}); id != "" || err != nil || dropped != 1 {
		t.Errorf("kept as %q with %d dropped, %v", id, dropped, err)
	}
	if err := k.settle("one"); err != nil || !d.ended || !slices.Equal(d.held, []string{"one"}) {
		t.Errorf("settled %q, ended is %t, %v", d.held, d.ended, err)
	}
}

// TestNobodyKeepsLettersWhereNoneAreWanted.
func TestNobodyKeepsLettersWhereNoneAreWanted(t *testing.T) {
	var k deadLetters
	id, err := k.keep(t.Context(), numbered(1, "{}"), &sink.RejectedError{})
	if id != "" || errors.Join(err, k.settle("one")) != nil {
		t.Errorf("kept as %q, %v", id, err)
	}
}
