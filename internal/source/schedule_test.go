package source

import (
	"context"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4NoWatchGoesOnWhereAReconcileIsDue, or begins before it has succeeded. A snapshot ends none.
func TestI4NoWatchGoesOnWhereAReconcileIsDue(t *testing.T) {
	s := newSchedule(nil)
	open, gone := true, change.Owed{Reason: change.Gone}
	mayWatch := func() bool { return s.mayWatch(func() { open = false }) }
	if s.add(requestedFor("lake")...); !mayWatch() || !open {
		t.Error("a snapshot that is due ends the watch, or lets none begin")
	}
	if s.add(gone); open || !s.isDue() || !s.awaits(change.Gone) || mayWatch() {
		t.Error("a watch goes on, or begins, where a reconcile is due")
	}
	for _, failed := range []bool{true, false} {
		if got := s.begin(); !slices.Equal(got, []change.Owed{gone}) || mayWatch() {
			t.Errorf("%+v begins, and a watch may beside it: %t", got, mayWatch())
		}
		if s.done(failed); s.isDue() != failed || mayWatch() == failed {
			t.Errorf("it failed: %t, and is due: %t", failed, s.isDue())
		}
	}
	if got := s.full(); !slices.Equal(got, requestedFor("lake")) {
		t.Errorf("beside the watch %+v are due", got)
	}
}

// TestI4SnapshotsAreReadBesideAWatchOnly: not before the first one, and a reconcile ends the reader until the next one.
func TestI4SnapshotsAreReadBesideAWatchOnly(t *testing.T) {
	var s *schedule
	began, read := make(chan []change.Owed), make(chan struct{})
	scheduled := newSchedule(func(ctx context.Context) {
		for owed := s.beginRead(ctx, func() {}); owed != nil; owed = s.beginRead(ctx, func() {}) {
			began <- owed
			failed := false
			select {
			case <-read:
			case <-ctx.Done():
				failed = true
			}
			s.doneRead(failed)
		}
	})
	s = &scheduled
	expect := func(sink string) {
		t.Helper()
		if got := <-began; !slices.Equal(got, requestedFor(sink)) {
			t.Errorf("%+v are read, want that for %s", got, sink)
		}
	}
	if s.add(requestedFor("lake")...); s.reader.stop != nil {
		t.Error("somebody reads before the first watch")
	}
	s.letRead(t.Context())
	expect("lake")
	s.add(change.Owed{Reason: change.Gone})
	<-s.reader.over
	s.stopReader()
	if s.add(requestedFor("bus")...); s.reader.stop != nil || len(s.full()) != 2 {
		t.Errorf("due are %+v, and somebody reads them before the watch: %t", s.full(), s.reader.stop != nil)
	}
	s.begin()
	s.done(false)
	s.withdraw(requestedFor("lake"))
	s.letRead(t.Context())
	expect("bus")
	close(read)
	<-s.reader.over
	if due := s.full(); len(due) > 0 {
		t.Errorf("%+v are due behind the end", due)
	}
}
