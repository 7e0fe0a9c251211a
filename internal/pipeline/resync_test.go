package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
)

// resyncRun is a run of many streams and of sinks with periods, which notes when which stream is asked.
type resyncRun struct {
	*run
	start time.Time
	asked []asked
}

type asked struct {
	stream string
	after  time.Duration
	sinks  []string
}

func newResyncRun(streams int, periods map[string]time.Duration) *resyncRun {
	config := &Config{Observer: NopObserver()}
	for _, name := range []string{"a", "b", "c"} {
		if period, there := periods[name]; there {
			config.Sinks = append(config.Sinks, delivery.Sink{Name: name, Resync: period})
		}
	}
	rr := &resyncRun{run: newRun(config), start: time.Now()}
	for i := range streams {
		stream := change.Stream{Resource: change.Resource{Name: fmt.Sprint("r", i)}}
		rr.Sources = append(rr.Sources, Source{Stream: stream, Request: func(owed ...change.Owed) {
			var sinks []string
			for _, o := range owed {
				sinks = append(sinks, o.Sink+" "+string(o.Reason))
			}
			rr.asked = append(rr.asked, asked{stream.String(), time.Since(rr.start), sinks})
		}})
	}
	return rr
}

// during runs the resyncer for the time, within a synctest bubble.
func (rr *resyncRun) during(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	newResyncer(&rr.run.participants).run(ctx)
}

func TestResyncAsksEachStreamOncePerPeriodAndSpreadsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rr := newResyncRun(50, map[string]time.Duration{"a": time.Hour, "b": time.Hour})
		rr.during(t, 10*time.Hour+time.Second)
		times := map[string][]time.Duration{}
		seconds := map[int]int{}
		for _, a := range rr.asked {
			times[a.stream] = append(times[a.stream], a.after)
			seconds[int(a.after.Seconds())]++
			if !slices.Equal(a.sinks, []string{"a resync", "b resync"}) {
				t.Fatalf("asked for %q; sinks of one period share a list", a.sinks)
			}
		}
		for name, at := range times {
			if len(at) != 10 || at[0] < 30*time.Minute || at[0] > time.Hour {
				t.Errorf("%s was asked at %v, want ten times, the first in the second half of an hour", name, at)
			}
			for i := 1; i < len(at); i++ {
				if at[i]-at[i-1] != time.Hour {
					t.Errorf("%s was asked at %v, want an hour between", name, at)
				}
			}
		}
		if len(times) != 50 || len(seconds) < 250 {
			t.Errorf("%d streams were asked in %d different seconds, want 50 and hundreds", len(times), len(seconds))
		}
	})
}

func TestResyncIsEachSinksOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rr := newResyncRun(1, map[string]time.Duration{"a": time.Hour, "b": 0, "c": 2 * time.Hour})
		rr.run.listeners[0].Wants = func(s *change.Stream) bool { return s.String() == "r0" }
		rr.during(t, 8*time.Hour)
		count := map[string]int{}
		for _, a := range rr.asked {
			count[strings.Join(a.sinks, ",")]++
		}
		if len(count) != 2 || count["a resync"] != 8 || count["c resync"] != 4 {
			t.Errorf("asked %v, want a eight times, c four times, b never", count)
		}
	})
}

// A stream that is behind would stand still for as long as the line drains.
func TestResyncOfAStreamThatIsBehindComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rr := newResyncRun(1, map[string]time.Duration{"a": time.Hour})
		stream := rr.Sources[0].Stream
		for range maxBehind + 1 {
			if err := rr.line.Push(t.Context(), &change.Record{Stream: &stream, Op: change.Bookmark}); err != nil {
				t.Fatal(err)
			}
		}
		rr.during(t, 2*time.Hour)
		if len(rr.asked) != 0 {
			t.Fatalf("a stream that is behind was asked: %+v", rr.asked)
		}
		time.AfterFunc(3*time.Hour, func() {
			for _, batch := range rr.line.Advance() {
				rr.line.Saved(batch)
			}
		})
		rr.during(t, 3*time.Hour+postponement)
		if len(rr.asked) != 1 {
			t.Errorf("asked %+v, want once, soon after it had caught up", rr.asked)
		}
	})
}

func TestResyncWithoutAPeriodAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rr := newResyncRun(3, map[string]time.Duration{"a": 0})
		rr.during(t, 1000*time.Hour)
		if len(rr.asked) != 0 {
			t.Errorf("asked %+v", rr.asked)
		}
	})
}

// A stream that joins has a time of its own, and one that has left is not asked.
func TestResyncOfStreamsThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rr := newResyncRun(2, map[string]time.Duration{"a": time.Hour})
		late := rr.Sources[1]
		rr.Sources = rr.Sources[:1]
		rr.run.resyncer = newResyncer(&rr.run.participants)
		time.AfterFunc(90*time.Minute, func() {
			rr.run.remove("r0")
			rr.run.add(late)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		rr.run.resyncer.run(ctx)
		for _, a := range rr.asked {
			if (a.stream == "r0") != (a.after <= 90*time.Minute) || a.stream == "r1" && a.after < 2*time.Hour {
				t.Errorf("%s was asked after %s", a.stream, a.after)
			}
		}
		if n := len(rr.asked); n < 2 || n > 3 {
			t.Errorf("asked %+v", rr.asked)
		}
	})
}
