package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestI4APositionThatAnotherServerRemembersIsNoGap: each server of a control plane has a history of its own, which
// begins with its last restart. The next connection may lead to one that has the position.
func TestI4APositionThatAnotherServerRemembersIsNoGap(t *testing.T) {
	forgotten := 3
	a := script(t, 100)
	a.servers = 2
	a.watch = func(_ url.Values, w *watchWriter) {
		if forgotten--; forgotten >= 0 {
			w.frames("GONE 95")
			return
		}
		w.frames("ADDED a 91")
		w.hold()
	}
	r := newRecorder()
	a.start(r, at(90))
	want(t, "records", r.wait(t, "added a 91"), "added a 91")
	want(t, "failures", strings.Join(r.failures, "\n"))
	if got := strings.Count(a.asked(), "watch 90"); got != 4 {
		t.Errorf("%d watches were opened at the position, want 4: %s", got, a.asked())
	}
}

// TestI4NoTurnsOfABalancerHideTheServerThatRemembers: it leads connections to its servers by turns. What is asked
// between two watches must not take as many of them each time as there are servers.
func TestI4NoTurnsOfABalancerHideTheServerThatRemembers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, servers := range []int{2, 3} {
			t.Run(fmt.Sprintf("%d servers, HTTP/2 %t", servers, http2), func(t *testing.T) {
				t.Parallel()
				addresses := make([]string, servers)
				for i := range addresses {
					one := script(t, 100)
					one.servers, one.http2 = servers, http2
					one.watch = func(_ url.Values, w *watchWriter) {
						if i < servers-1 {
							w.frames("GONE 95")
						} else {
							w.frames("ADDED a 91")
						}
						w.hold() // so the connection serves nothing more
					}
					addresses[i] = one.serve().Listener.Addr().String()
				}
				var turn atomic.Int64
				balancer, r := script(t, 100), newRecorder()
				balancer.http2 = http2
				balancer.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
					to := addresses[int(turn.Add(1)-1)%servers]
					return new(net.Dialer).DialContext(ctx, network, to)
				}
				balancer.start(r, at(90))
				r.await(t, 1)
				want(t, "records", strings.Join(r.lines, "\n"), "added a 91")
			})
		}
	}
}

// TestI4AnOnlyServerThatForgotIsBelieved at once: no other one can know more.
func TestI4AnOnlyServerThatForgotIsBelieved(t *testing.T) {
	a := script(t, 100)
	a.watch = func(q url.Values, w *watchWriter) {
		if q.Get("resourceVersion") == "90" {
			w.frames("GONE 95")
			return
		}
		w.hold()
	}
	r := newRecorder()
	a.start(r, at(90))
	r.wait(t, "snapshot.end 100 gone")
	if got := strings.Count(a.asked(), "watch 90"); got != 1 {
		t.Errorf("%d watches were opened at the position, want 1: %s", got, a.asked())
	}
}

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
		var all refusals
		now := time.Now()
		for i := range c.times {
			all.note(gone, now.Add(time.Duration(i)*c.each))
		}
		if got := all.newest.Load().convinces(c.servers); got != c.want {
			t.Errorf("%s: believed is %t, want %t", name, got, c.want)
		}
	}
}

// TestAWatchThatWorksTakesRefusalsBack: the next one begins the count anew.
func TestAWatchThatWorksTakesRefusalsBack(t *testing.T) {
	s := NewStream(Config{Stream: pods(), Inventory: newRecorder(), Observer: NopObserver()})
	w := &watcher{Stream: s}
	w.refusals.note(errors.New("gone"), time.Now())
	w.watchEnded(1, true, time.Millisecond, "7")
	if w.refusals.newest.Load() == nil {
		t.Error("the watch that was refused took its own refusal back")
	}
	w.watchEnded(1, true, time.Second, "7")
	if w.refusals.newest.Load() != nil {
		t.Error("a watch that worked left the refusal")
	}
}
