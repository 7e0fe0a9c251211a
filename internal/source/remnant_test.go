package source

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestI4OnlyWhatIsCertainToBeThereForAWhileIsGoneOnWith: else what comes next is a gap, too.
func TestI4OnlyWhatIsCertainToBeThereForAWhileIsGoneOnWith(t *testing.T) {
	tooOld := errors.New("too old resource version: 100 (150)")
	for what, c := range map[string]struct {
		took, since   time.Duration // of the watch that worked, and since its end
		gone          error
		position, now string
		want          string
	}{
		"a server has just started": {time.Second, 59 * time.Second, tooOld, "100", "200", "150"},
		"nothing happened since":    {time.Second, 0, tooOld, "150", "150", "150"},
		"the watch ended long ago":  {time.Second, 61 * time.Second, tooOld, "100", "200", "200"},
		"the watch never worked":    {time.Millisecond, 0, tooOld, "100", "200", "200"},
		"the server does not say":   {time.Second, 0, errors.New("The resourceVersion for the provided watch is too old."), "100", "200", "200"},
		"it is before the position": {time.Second, 0, tooOld, "151", "200", "200"},
		"it is of another server's": {time.Second, 0, tooOld, "100", "149", "149"},
		"it is no number":           {time.Second, 0, errors.New("too old resource version: 100 (x)"), "100", "200", "200"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r remnant
			r.ended(c.took)
			r.ended(time.Millisecond) // that of the error
			time.Sleep(c.since)
			r.gone(tooOld)
			r.gone(c.gone)
			for i, want := range []string{c.want, c.now} { // once
				if got := r.begin(c.position, c.now); got != want {
					t.Errorf("%s: the %d. time it begins at %s, want %s", what, i+1, got, want)
				}
				r.gone(tooOld)
			}
		})
	}
}
