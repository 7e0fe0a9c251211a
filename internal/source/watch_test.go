package source

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestI3ACutConnectionLosesAndRepeatsNothing. A watch that breaks is proven to be of the same history.
func TestI3ACutConnectionLosesAndRepeatsNothing(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10", "b 20", "c 30", "d 40")
		r.start("lake")
		r.do("-a 150", "-b 150")
		r.server.each(func(w *stream) {
			w.text += event{"MODIFIED", "n/c", "uid-c", 151, ""}.frame()[:40]
			w.finish(io.ErrUnexpectedEOF)
		})
		r.do("-d 150", "c 151")
		r.pass(time.Second)
		r.want("lake", "deleted a 150", "deleted b 150", "deleted d 150", "updated c 151")
		r.asked("watch 100, look b 150, watch 149")
	})
}

// TestI4APositionThatAnotherServerRemembersIsNoGap: each server of a control plane has a history of its own, which
// begins with its last restart. Where there is one alone, it is believed at once, and where nobody knows, as if there
// were two.
func TestI4APositionThatAnotherServerRemembersIsNoGap(t *testing.T) {
	for servers, believed := range map[int]int{1: 1, 2: 2 * minRefusals, 3: 3 * minRefusals} {
		play(t, 100, func(r *rig) {
			r.server.servers = servers
			r.exist("lake", 90)
			watches := 0
			r.server.answer = func(kind string, q url.Values) *http.Response {
				if kind != "watch" || q.Get("resourceVersion") != "90" {
					return nil
				}
				if watches++; watches >= believed {
					return nil
				}
				return reply(200, goneFrame(95)+"\n")
			}
			r.server.do("a 91")
			r.start("lake")
			r.pass(time.Minute)
			r.want("lake", "added a 91")
			compare(t, "failures", strings.Fields(r.failed()), nil)
			r.stop()
			r.server.forget(96)
			r.has("bus", 90)
			watches = 0
			r.start("bus")
			r.pass(time.Minute)
			if got := r.log("bus").take(); len(got) == 0 || got[0] != "gap 100 gone" || watches != believed {
				t.Errorf("of %d servers it asked %d times, want %d, and told %q", servers, watches, believed, got)
			}
		})
	}
}

// TestI4WatchesThatEndAtOnceAreStale: a server without a watch cache may answer a version that it does not have so.
// Those that are cut say nothing of the position.
func TestI4WatchesThatEndAtOnceAreStale(t *testing.T) {
	for _, c := range []struct {
		end  error
		want []string
	}{
		{io.EOF, []string{"gap 200 stale", "snapshot.begin 200 stale", "deleted a 90 unseen last", "snapshot.end 200 stale"}},
		{io.ErrUnexpectedEOF, []string{"deleted a 150"}},
	} {
		play(t, 100, func(r *rig) {
			r.exist("lake", 100, "a 90")
			r.server.do("-a 150", "200")
			watches := 0
			r.answers("watch", func(url.Values) *http.Response {
				if watches++; watches > maxEmpty {
					return nil
				}
				return &http.Response{StatusCode: 200, Body: io.NopCloser(readers{c.end})}
			})
			r.start("lake")
			r.pass(time.Minute)
			r.want("lake", c.want...)
		})
	}
}

// readers end with the error.
type readers struct{ error }

func (r readers) Read([]byte) (int, error) { return 0, r.error }

// TestAServerThatIsBusyIsAskedAgain, and what it said before is still true.
func TestAServerThatIsBusyIsAskedAgain(t *testing.T) {
	play(t, 200, func(r *rig) {
		r.exist("lake", 100)
		r.server.do("a 150")
		watches := 0
		r.answers("watch", func(url.Values) *http.Response {
			if watches++; watches < 3 {
				return busy()
			}
			return nil
		})
		r.start("lake")
		r.pass(time.Minute)
		r.want("lake", "added a 150")
	})
}

func busy() *http.Response {
	return reply(429, `{"kind":"Status","status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}`)
}

// TestI4AStreamGoesOnAtOnceWhenTheServerIsBack, and the outage is told once in a while.
func TestI4AStreamGoesOnAtOnceWhenTheServerIsBack(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100)
		r.start("lake")
		r.server.down = true
		r.server.cut()
		r.pass(10 * time.Minute)
		r.server.do("a 150")
		if told := strings.Count(r.failed(), "wait for the API server to answer"); told > int(10*time.Minute/outageTime) || told == 0 {
			t.Errorf("an outage of ten minutes was told %d times", told)
		}
		r.server.set(func(server *server) { server.down = false })
		r.pass(knocks)
		r.want("lake", "added a 150")
	})
}

// TestI4AccessThatIsGivenBackGoesOnWithoutALoss, and without a list.
func TestI4AccessThatIsGivenBackGoesOnWithoutALoss(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100, "a 10")
		forbidden := false
		r.server.answer = func(kind string, _ url.Values) *http.Response {
			if kind != "cluster" && forbidden {
				return reply(403, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods is forbidden","reason":"Forbidden","code":403}`)
			}
			return nil
		}
		r.start("lake")
		forbidden = true
		r.server.end()
		r.pass(time.Minute)
		r.do("-a 150", "b 151")
		r.want("lake")
		if failed := r.failed(); !strings.Contains(failed, "pods is forbidden") {
			t.Errorf("failures are %q", failed)
		}
		forbidden = false
		r.server.asked()
		r.pass(31 * time.Second) // the longest wait after a failure
		r.want("lake", "deleted a 150", "added b 151")
		r.asked("watch 100")
	})
}

// TestAResourceThatOneServerDoesNotServeIsAskedForAtAnother: while a connection lives, all requests of HTTP/2 go to one
// server. Nothing is told to be gone.
func TestAResourceThatOneServerDoesNotServeIsAskedForAtAnother(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 90, "a 10")
		other := false
		r.server.answer = func(kind string, _ url.Values) *http.Response {
			switch {
			case kind == "live":
				other = true
			case kind != "cluster" && !other:
				return reply(404, `{"kind":"Status","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`)
			}
			return nil
		}
		r.server.do("a 91")
		r.start("lake")
		r.pass(time.Minute)
		r.want("lake", "updated a 91")
	})
}

// TestI4AQuietStreamWithoutBookmarksIsNoGap: its position moves by two proofs together, a silent watch and a list that
// is what the sinks were told.
func TestI4AQuietStreamWithoutBookmarksIsNoGap(t *testing.T) {
	for name, c := range map[string]struct {
		missed []string // by the watch
		cut    bool
		moves  bool
	}{
		"quiet":          {nil, false, true},
		"an update":      {[]string{"b 150"}, false, false},
		"a creation":     {[]string{"c 150"}, false, false},
		"a delete":       {[]string{"-b 150"}, false, false},
		"another object": {[]string{"-b 150", "b 150 u2"}, false, false},
		"a broken watch": {nil, true, false},
	} {
		play(t, 200, func(r *rig) {
			r.server.frozen = len(c.missed) > 0
			r.exist("lake", 100, "a 10", "b 20")
			r.start("lake")
			r.server.do(c.missed...)
			r.pass(40 * time.Second)
			if r.stands("lake", "100"); c.cut {
				r.server.cut()
			} else {
				r.server.end()
			}
			r.pass(time.Second)
			asked := r.server.asked()
			if moves := asked == "watch 100, list, watch 200"; moves != c.moves || (r.position("lake") == "200") != c.moves {
				t.Errorf("%s: it stands at %s, and was asked for %s", name, r.position("lake"), asked)
			}
		})
	}
}

// TestI4AFirstStartBeginsWhereTheServerCanWatch: a server that builds its cache of a custom resource refuses watches
// from before it. A first start waits for it, and tells of no gap. An aggregated server need not have field selectors.
func TestI4AFirstStartBeginsWhereTheServerCanWatch(t *testing.T) {
	for version, answer := range map[string]*http.Response{
		"120": busy(), // it is built
		"100": reply(400, `{"kind":"Status","status":"Failure","message":"not supported: metadata.name","reason":"BadRequest","code":400}`),
	} {
		play(t, 100, func(r *rig) {
			r.server.do("a 10")
			r.server.oldest = number(version)
			asked := 0
			r.server.answer = func(kind string, q url.Values) *http.Response {
				if q.Get("fieldSelector") != "metadata.name!=." {
					return nil
				}
				if asked++; asked == 1 {
					return answer
				}
				r.server.do(version)
				return nil
			}
			r.start("lake")
			r.pass(time.Second)
			r.want("lake", "snapshot.begin "+version+" initial", "replaced a 10 last", "snapshot.end "+version+" initial")
			compare(t, "failures at "+version, strings.Fields(r.failed()), nil)
		})
	}
}

// TestAStartAsksLittle: of a stream that goes on once where the server stands, and a watch.
func TestAStartAsksLittle(t *testing.T) {
	for _, known := range []bool{false, true} {
		play(t, 10, func(r *rig) {
			if known {
				r.has("lake", 10)
			}
			asked := map[string]int{}
			r.server.answer = func(kind string, _ url.Values) *http.Response { asked[kind]++; return nil }
			r.start("lake")
			r.pass(time.Second)
			if asked["cluster"] > 2 || asked["version"] != 1 || asked["watch"] != 1 || asked["list"] != map[bool]int{false: 1}[known] || len(asked) > 4 {
				t.Errorf("known is %t, and it asked %v", known, asked)
			}
		})
	}
}

// TestI4AConnectionThatStandsStillIsReplaced: nobody else notices a balancer that has lost it.
func TestI4AConnectionThatStandsStillIsReplaced(t *testing.T) {
	play(t, 100, func(r *rig) {
		r.exist("lake", 100)
		r.server.frozen = true
		r.start("lake")
		r.server.do("a 150")
		r.pass(time.Second)
		r.want("lake")
		r.server.set(func(server *server) { server.frozen = false })
		r.pass(stillTime + time.Second)
		r.want("lake", "added a 150")
		if failed := r.failed(); !strings.Contains(failed, "has sent nothing for 50s") {
			t.Errorf("told of %q", failed)
		}
	})
}
