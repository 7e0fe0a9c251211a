package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ordeal is what two exporters go through.
type ordeal struct {
	*pair
	random *rand.Rand
	met    map[string]int // how often each fault was
}

// fault is what happens to a member. It returns when that is over, and the member runs again.
type fault struct {
	name   string
	weight int // of a hundred
	happen func(o *ordeal, m *member)
}

func faults() []fault {
	return []fault{
		{"killed", 25, (*ordeal).kill},
		{"paused", 20, (*ordeal).pause},
		{"cut off from the API server", 12, func(o *ordeal, m *member) { o.cutOff(m, m.api) }},
		{"cut off from the brokers", 12, func(o *ordeal, m *member) { o.cutOff(m, m.brokers...) }},
		{"cut off from everything", 11, func(o *ordeal, m *member) { o.cutOff(m, append(m.brokers[:len(m.brokers):len(m.brokers)], m.api)...) }},
		{"stopped", 10, (*ordeal).stop},
		{"both killed and lost", 10, func(o *ordeal, _ *member) { o.loseBoth() }},
	}
}

// next lets one fault happen, mostly to the leader, and returns its name.
func (o *ordeal) next() string {
	o.t.Helper()
	o.checkRunning()
	m := o.members[o.random.IntN(len(o.members))]
	if leader := o.leader(); leader != nil && o.random.IntN(4) > 0 {
		m = leader
	}
	drawn := o.random.IntN(100)
	for _, f := range faults() {
		if drawn -= f.weight; drawn < 0 {
			f.happen(o, m)
			o.met[f.name]++
			return f.name
		}
	}
	o.t.Fatal("the weights are not a hundred")
	return ""
}

// upTo waits for any time up to the limit.
func (o *ordeal) upTo(limit time.Duration) {
	upTo(o.t, o.random, limit)
}

func upTo(t *testing.T, random *rand.Rand, limit time.Duration) {
	select {
	case <-time.After(time.Duration(random.Int64N(int64(limit)))):
	case <-t.Context().Done():
	}
}

func (o *ordeal) kill(m *member) {
	m.die(o.t, o.random.IntN(4) == 0)
	o.upTo(2 * leaseTime)
	m.start(o.t)
}

// pause lets the member sleep until the other one can have taken over.
func (o *ordeal) pause(m *member) {
	m.signal(o.t, syscall.SIGSTOP)
	select {
	case <-time.After(leaseTime):
	case <-o.t.Context().Done():
	}
	o.upTo(leaseTime)
	m.signal(o.t, syscall.SIGCONT)
}

// cutOff takes the member's networks away. What it sent meanwhile comes late, unless its connections were reset.
func (o *ordeal) cutOff(m *member, networks ...*proxy) {
	cutOff(networks, o.random.IntN(2) == 0, func() { o.upTo(2 * leaseTime) })
}

// cutOff takes the networks away while the time passes. They may have forgotten their connections then.
func cutOff(networks []*proxy, forgets bool, pass func()) {
	for _, network := range networks {
		network.allow(0)
	}
	pass()
	for _, network := range networks {
		if forgets {
			network.reset()
		}
		network.allow(-1)
	}
}

// stop asks the member to end. What a busy broker has not answered in time is left to the next start.
func (o *ordeal) stop(m *member) {
	if code, said := o.end(m); code != 0 && !strings.Contains(said, leavesRest) {
		o.t.Fatalf("%s ended with code %d\n%s", filepath.Base(m.state), code, said)
	}
	o.upTo(leaseTime)
	m.start(o.t)
}

// loseBoth leaves nothing but the log of the state.
func (o *ordeal) loseBoth() {
	for _, m := range o.members {
		m.die(o.t, true)
	}
	for _, m := range o.members {
		m.start(o.t)
	}
}

// undergo lets so many faults happen, and until so many changes were made.
func (o *ordeal) undergo(t *testing.T, many, changes int) {
	t.Helper()
	for n := 0; n < many || o.changes() < changes; n++ {
		have := len(o.stream.all(t))
		name := o.next()
		if o.random.IntN(3) > 0 { // the next one comes when this one is over
			o.awaitIn(o.stream, "a record behind those before a member was "+name, func(e *event) bool { return e.place > have+1 })
		}
		if n%25 == 24 {
			o.deliver() // so that nothing is older than what the API server remembers
		}
	}
}

// changes is how many versions and deletes were written.
func (o *ordeal) changes() int {
	versions, deletes := o.ledger.count()
	return versions + deletes
}

// report is how often each fault was, and how often a member took over.
func (o *ordeal) report(t *testing.T) string {
	t.Helper()
	takeovers, all := 0, 0
	for _, m := range o.members {
		takeovers += strings.Count(m.log(t), "this exporter leads")
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(o.met)) {
		texts = append(texts, fmt.Sprintf("%d %s", o.met[name], name))
		all += o.met[name]
	}
	return fmt.Sprintf("%d faults, %d changes, %d takeovers: %s", all, o.changes(), takeovers, strings.Join(texts, ", "))
}
