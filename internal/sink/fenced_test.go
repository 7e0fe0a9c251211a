package sink

import (
	"errors"
	"fmt"
	"testing"
)

// TestI10AFenceIsFoundAmongTheErrorsOfSeveralSinks, whichever comes first.
func TestI10AFenceIsFoundAmongTheErrorsOfSeveralSinks(t *testing.T) {
	refused, fenced := Permanent("wrong password"), &PermanentError{Fenced: true, Err: errors.New("another one writes")}
	for want, err := range map[bool]error{
		true: fmt.Errorf("run: %w", errors.Join(refused, fmt.Errorf("sink bus: %w", fenced))), false: errors.Join(refused, errors.New("full")),
	} {
		if IsFenced(err) != want {
			t.Errorf("%v: fenced is %t", err, !want)
		}
	}
	if IsFenced(nil) {
		t.Error("nothing is fenced")
	}
}
