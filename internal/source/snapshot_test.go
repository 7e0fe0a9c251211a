package source

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// TestI3I4TheWatchGoesOnBesideTheInitialSnapshot: it does not wait for it, and moves the position. What it told is not
// told again in an older form, nor what it told to be gone. The list is of the first version in another life, too.
func TestI3I4TheWatchGoesOnBesideTheInitialSnapshot(t *testing.T) {
	for _, again := range []bool{false, true} {
		play(t, 100, func(r *rig) {
			r.server.do("a 10", "b 20", "c 30")
			stuck := make(chan struct{})
			r.server.answer = func(kind string, _ url.Values) *http.Response {
				switch {
				case kind == "list" && again:
					return reply(500, "{}")
				case kind == "list":
					<-stuck
				}
				return nil
			}
			r.start("lake")
			r.do("a 101", "-b 120", "d 150")
			r.want("lake", "snapshot.begin 100 initial", "updated a 101", "deleted b 120", "added d 150")
			r.stands("lake", "149")
			if close(stuck); again {
				r.stop()
				r.server.answer = nil
				r.start("lake")
			}
			r.want("lake", "replaced c 30 last", "snapshot.end 100 initial")
		})
	}
}

// TestWhatALogHasLostIsNoDrift: no other sink is compared for it.
func TestWhatALogHasLostIsNoDrift(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.server.do("a 10", "b 20")
		r.has("bus", 100, "a 10", "b 20")
		r.has("lake", 100, "a 10")
		state, err := r.store.LoadSink("lake")
		r.must(err)
		r.must(r.store.MarkLost(state, true))
		r.start("lake", "bus")
		r.pass(time.Minute)
		r.want("lake", "gap 100 lost", "snapshot.begin 100 lost", "replaced a 10", "replaced b 20 last",
			"snapshot.end 100 lost")
		r.want("bus")
		compare(t, "drift", r.drift, nil)
	})
}

// TestI4APageIsComparedBesideOneWatch: after another one the server may have another history.
func TestI4APageIsComparedBesideOneWatch(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10")
		stuck, lists := make(chan struct{}), 0
		r.answers("list", func(url.Values) *http.Response {
			if lists++; lists > 1 {
				return nil
			}
			<-stuck
			return pageOf(100, "", items("other 90")...)
		})
		r.start("lake")
		r.ask("lake", change.Resync, change.Limits{})
		r.server.end()
		r.pass(time.Second)
		close(stuck)
		r.pass(time.Second)
		r.want("lake", "snapshot.begin 100 resync", "sync a 10 last", "snapshot.end 100 resync")
	})
}

// TestI4APageThatOutlastsItsWatchesGetsSmaller: read again as it was, it would be for ever.
func TestI4APageThatOutlastsItsWatchesGetsSmaller(t *testing.T) {
	play(t, 1000, func(r *rig) {
		names := many(pageSize)
		r.exist("lake", 1000, names...)
		var limits []string
		r.answers("list", func(q url.Values) *http.Response {
			if limits = append(limits, q.Get("limit")); number(q.Get("limit")) > 2*firstPage {
				time.Sleep(stillTime - time.Second) // longer than a watch
			}
			return nil
		})
		r.start("lake")
		r.ask("lake", change.Resync, change.Limits{})
		r.pass(time.Hour)
		if got := r.log("lake").take(); len(got) != pageSize+2 {
			t.Errorf("of %d objects %d were told, in pages of %v", pageSize, len(got)-2, limits)
		}
		compare(t, "pages", limits[:6], []string{"16", "64", "32", "128", "64", "32"})
	})
}

// TestPagesAreAsLargeAsTheServerAndTheSinksKeepUpWith so that no list lives for a minute.
func TestPagesAreAsLargeAsTheServerAndTheSinksKeepUpWith(t *testing.T) {
	for _, c := range []struct {
		limit int
		took  time.Duration
		next  int
	}{
		{firstPage, time.Second, 4 * firstPage}, {pageSize / 2, time.Second, pageSize}, {pageSize, time.Second, pageSize},
		{pageSize, slowPage / 2, pageSize}, {pageSize, slowPage + 1, pageSize / 2}, {100, slowPage / 2, 100}, {firstPage, slowPage + 1, firstPage},
	} {
		if next := nextLimit(c.limit, c.took); next != c.next {
			t.Errorf("behind a page of %d that took %s comes one of %d, want %d", c.limit, c.took, next, c.next)
		}
	}
}

// TestI4ASnapshotGoesOnBehindAFailure, and repeats nothing; each life tells what those before it did not.
func TestI4ASnapshotGoesOnBehindAFailure(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "drifted 20", "z 30")
		r.server.do("drifted 25", "100")
		r.server.pageSize = 2
		failures := 0
		r.answers("list", func(q url.Values) *http.Response {
			if q.Get("continue") != "" {
				if failures++; failures < 3 {
					return reply(500, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"boom","code":500}`)
				}
			}
			return nil
		})
		r.start("lake")
		r.ask("lake", change.Resync, change.Limits{})
		r.pass(time.Minute)
		r.want("lake", "snapshot.begin 100 resync", "sync a 10", "replaced drifted 25", "sync z 30 last", "snapshot.end 100 resync")
		if failed := r.failed(); strings.Count(failed, "read a snapshot of pods: boom") != 2 {
			t.Errorf("failures are %q", failed)
		}
	})
}

// TestI3TheLastRecordOfASnapshotIsMarked, for formats that say so. What nobody gets is none.
func TestI3TheLastRecordOfASnapshotIsMarked(t *testing.T) {
	for name, c := range map[string]struct{ has, listed, want []string }{
		"one":               {nil, []string{"a 1"}, []string{"replaced a 1 last"}},
		"none":              {[]string{"a 1"}, []string{"a 1"}, nil},
		"gone comes last":   {[]string{"b 1"}, []string{"a 1"}, []string{"replaced a 1", "deleted b 1 unseen last"}},
		"nobody's are last": {nil, []string{"a 1", "b 2", "xa 3", "xb 4"}, []string{"replaced a 1", "replaced b 2 last"}},
		"nobody's between":  {nil, []string{"a 1", "xa 3", "z 4"}, []string{"replaced a 1", "replaced z 4 last"}},
		"all are nobody's":  {nil, []string{"xa 3", "xb 4"}, nil},
	} {
		play(t, 300, func(r *rig) {
			r.config = func(config *Config) {
				config.Shape = func(rec *change.Record) {
					if strings.HasPrefix(rec.Key.Name, "x") {
						rec.Filtered, rec.Object = true, nil
					}
				}
			}
			r.has("lake", 100, c.has...)
			r.server.do(c.listed...)
			r.server.forget(300)
			r.start("lake")
			want := append([]string{"gap 300 gone", "snapshot.begin 300 gone"}, c.want...)
			if r.want("lake", append(want, "snapshot.end 300 gone")...); t.Failed() {
				t.Error(name)
			}
		})
	}
}

// TestI4ALimitedSnapshotTellsOfNoOtherObjectThatItIsGone, and of one within its limits that it is. It has its own end.
func TestI4ALimitedSnapshotTellsOfNoOtherObjectThatItIsGone(t *testing.T) {
	for limits, want := range map[change.Limits][]string{
		{Namespace: "m"}: {"replaced m/new 50", "deleted m/gone 30 unseen last"}, {Name: "gone"}: {"deleted m/gone 30 unseen", "deleted gone 20 unseen last"},
		{Namespace: "m", Name: "gone"}: {"deleted m/gone 30 unseen last"}, {Namespace: "n", Name: "a"}: {"sync a 10 last"},
		{Selector: "x"}: {"replaced m/new 50", "sync a 10 last"},
	} {
		play(t, 100, func(r *rig) {
			r.has("lake", 100, "a 10", "gone 20", "m/gone 30")
			r.server.do("a 10", "m/new 50")
			r.start("lake")
			r.ask("lake", change.Requested, limits)
			r.pass(time.Minute)
			of := map[change.Limits]string{{Namespace: "m"}: "m/ "}[limits]
			want := append([]string{"snapshot.begin " + of + "100 requested"}, want...)
			if r.want("lake", append(want, "snapshot.end "+of+"100 requested")...); t.Failed() {
				t.Errorf("limits %+v", limits)
			}
		})
	}
}

// TestASnapshotOfChosenObjectsThatHasNotBegunIsOneHoweverOftenItIsAskedFor: whoever asks again does not know whether it
// was heard.
func TestASnapshotOfChosenObjectsThatHasNotBegunIsOneHoweverOftenItIsAskedFor(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "b 20")
		r.start("lake")
		lake := r.intakes["lake"]
		for _, limits := range []change.Limits{{Name: "a"}, {Name: "b"}} {
			r.informer.Ask([]*listener.Intake{lake, lake}, change.Requested, limits)
		}
		r.pass(time.Minute)
		begin, end := "snapshot.begin 100 requested", "snapshot.end 100 requested"
		r.want("lake", begin, "sync a 10 last", end, begin, "sync b 20 last", end)
	})
}

// TestASnapshotThatIsWithdrawnHasNoEnd, while one that shares its list goes on, and what was begun of an object is told
// whole.
func TestASnapshotThatIsWithdrawnHasNoEnd(t *testing.T) {
	for _, limits := range []change.Limits{{}, {Selector: "x"}} {
		play(t, 100, func(r *rig) {
			names := many(6)
			r.exist("lake", 100, names...)
			r.has("bus", 100, names...)
			r.server.pageSize = 3
			stuck := make(chan struct{})
			r.answers("list", func(q url.Values) *http.Response {
				if q.Get("continue") != "" {
					<-stuck
				}
				return nil
			})
			abandoned := 0
			r.config = func(config *Config) {
				config.Observer.Abandoned = func(change.Stream, *change.Snapshot) { abandoned++ }
			}
			r.start("lake", "bus")
			r.informer.Ask([]*listener.Intake{r.intakes["lake"], r.intakes["bus"]}, change.Requested, limits)
			synctest.Wait()
			r.informer.Withdraw(r.intakes["lake"], limits)
			synctest.Wait()
			close(stuck)
			r.pass(time.Minute)
			if got := strings.Join(r.log("lake").take(), " "); strings.Contains(got, "snapshot.end") {
				t.Errorf("%+v: of what is withdrawn is told %s", limits, got)
			}
			if got := r.log("bus").take(); len(got) != 8 || got[7] != "snapshot.end 100 requested" {
				t.Errorf("%+v: of the other one is told %q", limits, got)
			}
			if abandoned != 1 {
				t.Errorf("%+v: %d snapshots were abandoned", limits, abandoned)
			}
		})
	}
}

// TestI3I4TheWatchOvertakesASnapshotWhoseSinkIsSlow: nothing waits for the sink, what the watch tells meanwhile is not
// told again in an older form, and what it tells to be gone does not come back.
func TestI3I4TheWatchOvertakesASnapshotWhoseSinkIsSlow(t *testing.T) {
	play(t, 100, func(r *rig) {
		large := `","big":"` + strings.Repeat("x", leastAhead/8)
		var had []string
		for i := range 4 * turnObjects {
			name := fmt.Sprintf("p%03d", i)
			had = append(had, fmt.Sprintf("%s %d", name, i+1))
			r.server.objects["n/"+name] = event{kind: "ADDED", key: "n/" + name, uid: "uid-" + name + large, version: i + 1}
			r.server.history = append(r.server.history, r.server.objects["n/"+name])
		}
		r.server.version = 200
		r.has("lake", 200)
		r.start("lake")
		r.log("lake").block()
		r.ask("lake", change.Resync, change.Limits{})
		last := len(had) - 1
		r.do("-p127 201", "p126 202", "z 203", "=210")
		r.stands("lake", "210")
		r.log("lake").free()
		r.pass(time.Minute)
		got := strings.Join(r.log("lake").take(), "\n")
		for _, line := range []string{"replaced " + had[last], "replaced " + had[last-1]} {
			if strings.Contains(got, line) {
				t.Errorf("%s was overtaken, and is told", line)
			}
		}
		if strings.Count(got, "replaced") != last-1 || !strings.HasSuffix(got, "snapshot.end 200 resync") {
			t.Errorf("told is\n%s", got)
		}
	})
}

// TestI6MoreMissedDeletesThanMayWaitAreToldWhenTheWatchWasSilent: a stream without bookmarks may never move.
func TestI6MoreMissedDeletesThanMayWaitAreToldWhenTheWatchWasSilent(t *testing.T) {
	play(t, 100, func(r *rig) {
		var names []string
		for i := range maxPassed + 1 {
			names = append(names, fmt.Sprintf("p%05d 1", i))
		}
		r.has("lake", 99, names...)
		r.queue.Records = 1 << 20
		r.start("lake")
		r.server.do("300")
		r.server.kept = 300
		r.ask("lake", change.Resync, change.Limits{})
		r.pass(minSilence - time.Second)
		r.want("lake", "snapshot.begin 99 resync")
		r.pass(2 * time.Second)
		if got := r.log("lake").take(); len(got) != len(names)+1 || got[len(names)] != "snapshot.end 300 resync" {
			t.Errorf("%d records are told, the last is %q", len(got), got[max(0, len(got)-1):])
		}
	})
}

// TestTheRateOfSnapshotsIsBounded over all streams, and not where there is no bound.
func TestTheRateOfSnapshotsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for objectsPerSecond, want := range map[int]time.Duration{64: 1500 * time.Millisecond, 0: 0} { // the first turn is free
			began, shared := time.Now(), NewRate(objectsPerSecond)
			for range 4 {
				must(t, shared.WaitN(t.Context(), turnObjects))
			}
			if took := time.Since(began); took != want {
				t.Errorf("128 objects took %s at %d a second, want %s", took, objectsPerSecond, want)
			}
		}
	})
}

// TestPaceFollowsTheSink: it doubles while half of what waits is taken fast, and halves where that takes long.
func TestPaceFollowsTheSink(t *testing.T) {
	ahead := leastAhead
	for _, c := range []struct {
		wait time.Duration
		want int
	}{{time.Millisecond, mostAhead}, {(minWait + maxWait) / 2, mostAhead}, {time.Second, leastAhead}} {
		for range 20 {
			ahead = nextAhead(ahead, c.wait)
		}
		if ahead != c.want {
			t.Errorf("behind waits of %s it is %d bytes ahead, want %d", c.wait, ahead, c.want)
		}
	}
}

// TestI4AListThatIsForgottenGoesOnAtANewerVersion: what is newer than the position is the watch's to tell, and the
// snapshot ends behind it. Nothing that is there is told to be gone.
func TestI4AListThatIsForgottenGoesOnAtANewerVersion(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "c 20")
		r.server.frozen = true
		r.start("lake")
		r.server.do("b 200", "-c 250", "300")
		r.server.forget(300)
		r.ask("lake", change.Requested, change.Limits{})
		r.pass(time.Second)
		r.want("lake", "snapshot.begin 100 requested")
		r.server.frozen = false
		r.do("=301")
		r.want("lake", "added b 200", "deleted c 250", "sync a 10 last", "snapshot.end 300 requested")
		r.asked("watch 100, list 100, list 300")
		r.server.frozen = true
		r.server.do("d 400", "500")
		r.server.forget(500)
		r.ask("lake", change.Requested, change.Limits{})
		r.pass(time.Second)
		r.want("lake", "snapshot.begin 301 requested", "sync a 10") // b is held, as it may be the last one
		r.server.frozen = false
		r.do("=501")
		r.want("lake", "added d 400", "sync b 200 last", "snapshot.end 500 requested")
	})
}
