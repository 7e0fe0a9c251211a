package statelog

import (
	"context"
	"fmt"
	"testing"
)

// TestAStopDoesNotWaitForASegment: whoever leads next would wait with it. The log has everything all the same, and the
// next writer goes on in it.
func TestAStopDoesNotWaitForASegment(t *testing.T) {
	w := oneWorld(t)
	for i := range 500 {
		w.rows[fmt.Sprintf("A%03d", i)] = "value"
	}
	w.note()
	live := func(before func()) int {
		t.Helper()
		must(t, w.begin())
		from := w.count
		before()
		close(w.session.finish)
		must(t, w.session.run(context.Background()))
		if w.logged == nil {
			t.Error("the state does not know that the log has everything")
		}
		return w.count - from
	}
	all := live(func() {}) // the first segment: without it the log has nothing
	rest := live(func() {
		if !w.session.whole {
			t.Fatal("it does not go on in the log")
		}
		w.session.segment = &segment{}
		must(t, w.step())
		w.commit()
	})
	if rest > all/10 {
		t.Errorf("the stop wrote %d messages, and all pages are %d", rest, all)
	}
	w.judge()
	live(func() {
		if !w.session.whole {
			t.Error("the next writer begins another chain")
		}
	})
}
