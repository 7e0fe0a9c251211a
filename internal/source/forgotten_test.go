package source

import (
	"errors"
	"testing"
	"time"
)

// TestARefusalIsBelievedThatIsRepeated often enough, and without a long break.
func TestARefusalIsBelievedThatIsRepeated(t *testing.T) {
	gone := errors.New("too old resource version: 1 (2)")
	for name, c := range map[string]struct {
		times   int
		each    time.Duration
		servers int
		want    bool
	}{
		"once":                     {1, time.Second, 2, false},
		"once, by the only one":    {1, time.Second, 1, true},
		"often, by two":            {2 * minRefusals, time.Second, 2, true},
		"often, by nobody knows":   {2 * minRefusals, time.Second, 0, true},
		"seldom":                   {2*minRefusals - 1, time.Second, 2, false},
		"seldom, of five":          {5*minRefusals - 1, time.Second, 5, false},
		"again after a long break": {2 * minRefusals, keptTime + time.Second, 2, false},
	} {
		var newest *refusal
		now := time.Now()
		for i := range c.times {
			newest = newest.again(gone, now.Add(time.Duration(i)*c.each))
		}
		if got := newest.convinces(c.servers); got != c.want {
			t.Errorf("%s: believed is %t, want %t", name, got, c.want)
		}
	}
}
