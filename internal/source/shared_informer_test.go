package source

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestNoSinkWaitsForAnother: one whose queue is full leaves the watch, goes on with one of its own, and is back with
// the others when it has what they have. Nothing is lost, and nothing told twice.
func TestNoSinkWaitsForAnother(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.has("lake", 100)
		r.has("bus", 100)
		r.queue.Records = 2
		r.start("lake", "bus")
		r.log("bus").block()
		var want []string
		for _, text := range []string{"a 110", "b 120", "c 130", "d 140", "e 150", "f 160"} {
			r.do(text)
			r.pass(2 * roomWait)
			want = append(want, "added "+text)
		}
		r.want("lake", want...)
		r.want("bus")
		if !r.informer.IsApart(r.intakes["bus"]) || r.informer.IsApart(r.intakes["lake"]) {
			t.Error("the sink that is full is not apart, or the other one is")
		}
		r.log("bus").free()
		r.pass(time.Second)
		r.want("bus", want...)
		r.do("g 170", "=180", "h 190")
		r.pass(time.Second)
		for _, name := range []string{"lake", "bus"} {
			r.want(name, "added g 170", "added h 190")
		}
		if r.informer.IsApart(r.intakes["bus"]) {
			t.Error("a sink that has everything is apart still")
		}
	})
}

// TestNoComparisonWaitsForAnother: the history that all sinks need is gone, and one of them takes nothing. The others
// are compared all the same. That one is compared when it takes something again.
func TestNoComparisonWaitsForAnother(t *testing.T) {
	play(t, 1000, func(r *rig) {
		r.has("lake", 100)
		r.has("bus", 100)
		r.queue.Records = 40
		var want []string
		for n := range 200 {
			text := fmt.Sprintf("p%03d %d", n, 200+n)
			r.server.do(text)
			want = append(want, "replaced "+text)
		}
		r.server.forget(1000)
		r.log("bus").block()
		r.start("lake", "bus")
		r.pass(time.Minute)
		want[len(want)-1] += " last"
		want = append(append([]string{"gap 1000 gone", "snapshot.begin 1000 gone"}, want...), "snapshot.end 1000 gone")
		r.want("lake", want...)
		r.log("bus").free()
		r.pass(time.Minute)
		r.want("bus", want...)
		for n := 1100; n < 1200 && r.informer.IsApart(r.intakes["bus"]); n += 10 { // it joins where nobody has the other turn
			r.do(fmt.Sprint("z ", n))
			r.pass(time.Second)
		}
		if r.informer.IsApart(r.intakes["bus"]) {
			t.Error("a sink that has everything is apart still")
		}
	})
}

// TestI3WhatIsHeldBackOfASnapshotStaysBehind when its sink goes on with a watch of its own: while the other waits for a
// page, the sink is told of the object and of its end.
func TestI3WhatIsHeldBackOfASnapshotStaysBehind(t *testing.T) {
	play(t, 1000, func(r *rig) {
		for _, name := range []string{"lake", "bus"} {
			r.has(name, 100)
		}
		r.queue.Records, r.server.pageSize = 40, 2
		r.server.do("a 201", "b 202", "c 203")
		r.server.forget(1000)
		late := make(chan struct{})
		r.answers("list", func(q url.Values) *http.Response {
			if q.Get("continue") != "" {
				<-late
			}
			return nil
		})
		r.start("lake", "bus") // b is held back, until more is known
		r.server.pageSize = 0
		r.log("bus").block()
		for n := range 100 {
			r.do(fmt.Sprint("x ", 1001+n))
			r.pass(2 * roomWait)
		}
		if !r.informer.IsApart(r.intakes["bus"]) {
			t.Error("the sink that is full is not apart")
		}
		r.log("bus").free()
		r.pass(time.Minute)
		r.do("-b 1200")
		close(late)
		r.pass(time.Minute)
		var told []string
		for _, line := range r.log("bus").take() {
			if strings.Contains(line, " b ") {
				told = append(told, line)
			}
		}
		compare(t, "what the sink is told of b", told, []string{"replaced b 202", "deleted b 1200"})
	})
}

// TestI3AChosenSnapshotGoesWithItsSink: a sink whose queue is full leaves the watch beside which a snapshot of chosen
// objects is read for it. What it is told stays in order, and the snapshot has an end.
func TestI3AChosenSnapshotGoesWithItsSink(t *testing.T) {
	play(t, 1000, func(r *rig) {
		r.queue.Records = 40
		var objects []string
		for n := range 200 {
			objects = append(objects, fmt.Sprintf("p%03d %d", n, 200+n))
		}
		r.exist("lake", 1000, objects...)
		r.has("bus", 1000, objects...)
		abandoned := 0
		r.config = func(config *Config) {
			config.Observer.Abandoned = func(change.Stream, *change.Snapshot) { abandoned++ }
		}
		r.start("lake", "bus")
		r.log("bus").block()
		r.ask("bus", change.Requested, change.Limits{Selector: "x"})
		for n := range 100 {
			r.do(fmt.Sprintf("p%03d %d", n, 1001+n))
			r.pass(2 * roomWait)
		}
		if !r.informer.IsApart(r.intakes["bus"]) {
			t.Error("the sink that is full is not apart")
		}
		r.log("bus").free()
		r.pass(time.Minute)
		newest := map[string]int{}
		ends := 0
		for _, line := range r.log("bus").take() {
			fields := strings.Fields(line)
			if strings.HasPrefix(fields[0], "snapshot.") {
				ends += strings.Count(line, "snapshot.end")
				continue
			}
			if version := number(fields[2]); version < newest[fields[1]] {
				t.Errorf("%s is told behind version %d", line, newest[fields[1]])
			} else {
				newest[fields[1]] = version
			}
		}
		if ends != 1 || abandoned != 1 || newest["p099"] != 1100 {
			t.Errorf("%d snapshots have an end, %d have none, and p099 is at %d", ends, abandoned, newest["p099"])
		}
	})
}

// TestI3AStreamGoesOnInAnotherVersion where it was, without a list. A snapshot that is asked for while nothing is read
// is not forgotten.
func TestI3AStreamGoesOnInAnotherVersion(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10")
		r.start("lake")
		r.do("c 111", "=112")
		r.informer.Serve("")
		synctest.Wait()
		r.do("d 113")
		r.ask("lake", change.Requested, change.Limits{})
		r.want("lake", "added c 111")
		r.informer.Serve("v2")
		r.informer.Serve("v2") // nothing new
		r.pass(time.Second)
		got := strings.Join(r.log("lake").take(), ", ")
		list := "112"
		if strings.Contains(got, "end 113") { // the watch was first
			list = "113"
		}
		want := []string{"added d 113", "snapshot.begin 112 requested", "sync a 10", "sync c 111", "snapshot.end " + list + " requested"}
		for _, line := range want {
			if strings.Count(got, line) != 1 {
				t.Errorf("want %s once, and told is %s", line, got)
			}
		}
		r.asked("watch 100, watch 112, list " + list)
	})
}

// TestI4AResourceWhoseDefinitionIsDeleted: what the sink has of it is deleted, behind a gap, in the history that was
// delivered; where the watch has told all, its end alone is told, and where nothing ever was, nothing. Then it is over:
// the saved state has no position of it.
func TestI4AResourceWhoseDefinitionIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		has  func(r *rig)
		want []string
	}{
		"objects": {func(r *rig) { r.exist("lake", 100, "a 1", "b 2") },
			[]string{"gap 120 removed", "snapshot.begin 120 removed", "deleted a 120 unseen", "deleted b 120 unseen", "snapshot.end 120 removed"}},
		"none":  {func(r *rig) { r.has("lake", 100) }, []string{"snapshot.end 120 removed"}},
		"never": {func(*rig) {}, nil},
	} {
		play(t, 100, func(r *rig) {
			c.has(r)
			r.config = func(config *Config) { config.ClusterUID = "epoch-2" }
			r.server.down = true
			r.start("lake")
			r.informer.End("120")
			r.pass(time.Second)
			if r.want("lake", c.want...); t.Failed() {
				t.Error(name)
			}
			if all := r.epochs("lake"); len(all) > 0 && all[0] != "epoch-1" {
				t.Errorf("it is told in the histories %q", all)
			}
			if at := r.position("lake"); at != "" {
				t.Errorf("%s: it stands at %s", name, at)
			}
		})
	}
}

// TestNobodyWaitsForItsTurnUnderTheLockOfAWatch: the Reflector would wait for the lock, and no simulated time passes
// while somebody does.
func TestNobodyWaitsForItsTurnUnderTheLockOfAWatch(t *testing.T) {
	for name, end := range map[string]func(w *stream){
		"it ended":                 func(w *stream) { w.finish(io.EOF) },
		"it broke":                 func(w *stream) { w.finish(io.ErrUnexpectedEOF) },
		"it cannot be read":        func(w *stream) { w.say("x") },
		"the server sent an error": func(w *stream) { w.say(frameOf("ERROR", `{"kind":"Status","code":500}`)) },
	} {
		play(t, 100, func(r *rig) {
			r.exist("lake", 100)
			r.start("lake")
			i := r.informer.informers[0]
			opened, err := i.open(r.Context(), "100", nil)
			r.must(err)
			lock := opened.(*feed).decoded
			i.turns.take() // as a snapshot has it
			r.server.do("a 101")
			r.server.each(end)
			synctest.Wait()
			over := make(chan struct{})
			go func() { // the Reflector
				defer close(over)
				for event := range opened.ResultChan() {
					if event.Type == watch.Error {
						break
					}
				}
				opened.Stop()
			}()
			for range 4 { // the turn goes round, and each time the next one has it for long
				next := make(chan struct{})
				go func() { i.turns.take(); close(next) }()
				synctest.Wait()
				i.turns.give()
				<-next
				synctest.Wait()
				if lock.TryLock() {
					lock.Unlock()
				} else {
					t.Errorf("%s: somebody waits with the lock", name)
				}
			}
			i.turns.give()
			<-over
			r.pass(time.Minute)
			r.do("b 102")
			want := []string{"added a 101", "added b 102"}
			if name == "it cannot be read" { // of two watches, at the same position
				want = slices.Insert(want, 1, "gap 101 stale", "snapshot.begin 101 stale", "snapshot.end 101 stale")
			}
			r.want("lake", want...)
		})
	}
}
