package telemetry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4ASilentStreamIsToldAndABookmarkIsASign: a record that was received and a bookmark, which has no such time, are
// both signs of life.
func TestI4ASilentStreamIsToldAndABookmarkIsASign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry, both := quiet(), streams()
		problems := func() int {
			telemetry.mu.Lock()
			defer telemetry.mu.Unlock()
			return len(telemetry.states.unhealthy(time.Now()))
		}
		time.Sleep(silence + time.Second)
		if n := problems(); n != len(both) {
			t.Fatalf("%d streams are called silent, want %d", n, len(both))
		}
		telemetry.Received(&change.Record{Stream: &both[0], Op: change.Updated, Received: time.Now()})
		if n := problems(); n != len(both)-1 {
			t.Errorf("%d streams are called silent after a record of one, want %d", n, len(both)-1)
		}
		telemetry.Received(&change.Record{Stream: &both[1], Op: change.Bookmark})
		if n := problems(); n != 0 {
			t.Errorf("%d streams are called silent after a bookmark of the other, want 0", n)
		}
	})
}

// TestAnAgeIsNeverNegative, as what comes while a status is made is newer than the status.
func TestAnAgeIsNeverNegative(t *testing.T) {
	now := time.Now()
	for then, want := range map[time.Time]float64{{}: 0, now.Add(-2 * time.Second): 2, now.Add(time.Microsecond): 0} {
		if got := age(now, then); got != want {
			t.Errorf("the age of %v at %v is %v s, want %v", then, now, got, want)
		}
	}
}

// TestPositionsAreShownFromTheStart: those that the state had.
func TestPositionsAreShownFromTheStart(t *testing.T) {
	whole, part := change.Stream{Resource: change.Resource{Name: "pods"}}, change.Stream{Resource: change.Resource{Name: "secrets"}}
	telemetry := New(Options{Streams: []change.Stream{whole, part}, CountObjects: func(string, change.Stream) (int, error) { return 0, nil }, Positions: map[string]string{"pods": "7"}})
	status := telemetry.Status()
	if got := status.Streams["pods"].ResourceVersion + "," + status.Streams["secrets"].ResourceVersion; got != "7," {
		t.Errorf("positions %q, want 7 and none", got)
	}
}
