package usage

import (
	"errors"
	"testing"
)

var errTest = errors.New("cause")

func TestSeveralIsOneErrorWhereThereIsOne(t *testing.T) {
	if err := Several("sinks", nil, nil); err != nil {
		t.Errorf("got %v of nothing", err)
	}
	if err := Several("sinks", nil, errTest); err != errTest {
		t.Errorf("got %v of one", err)
	}
	if got, want := Several("sinks", errTest, nil, errTest).Error(), "sinks: 2 problems:\n  cause\n  cause"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestSomeOfManyAreNamed, and the others counted.
func TestSomeOfManyAreNamed(t *testing.T) {
	if got := Some([]string{"g", "f", "e", "d", "c", "b", "a"}, 5); got != "a, b, c, d, e, 2 more" {
		t.Errorf("got %q", got)
	}
}
