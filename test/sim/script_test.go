package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// script is everything that happens to the exporter and is not its own doing. It comes from a seed, and is written and
// read as text, so that the script of a bug outlives the generator that found it.
type script struct {
	Seed    uint64     // of the small choices: latencies, what of an unsynced disk survives
	Many    int        `json:",omitzero"` // so many objects more are there before the first life, for an initial snapshot of many pages
	Odd     bool       `json:",omitzero"` // Events are listed in the order of namespace and name, which is not that of their keys
	Late    bool       `json:",omitzero"` // a sink that is away when a life begins is opened late; otherwise it is only written to late
	Half    bool       `json:",omitzero"` // half of all updates do not matter, and are not told
	Members int        `json:",omitzero"` // so many members the task has; 0 is that the exporter is alone
	Without string     `json:",omitzero"` // what is taken out of that, "" is nothing
	Sinks   []sinkSpec `json:"-"`
	Lives   []lifeSpec `json:"-"`
}

// sinkSpec is one sink.
type sinkSpec struct {
	Name       string
	Partitions int
	Takes      string // "pods", "events" or "both"
	Queue      int    // records
	Resync     int    `json:",omitzero"` // seconds; 0 is never
	Rejects    bool   `json:",omitzero"`
	Full       string // what its full queue does: "block", "spool" or "coalesce", and after a slash how many bytes it may have on disk
}

// lifeSpec is one life of the exporter: what happens while it runs and, after a crash, while it does not.
type lifeSpec struct {
	Sinks   string // the initials of those that are configured
	Pods    string `json:",omitzero"` // the namespaces of which they are configured; "" is all, "-" is none
	Events  string `json:",omitzero"`
	Strict  bool   `json:",omitzero"` // the rules leave the salt of objects out
	Keep    int    `json:",omitzero"` // the number of the step of the disk from which on a copy of what is saved is put aside; 0 is none
	Back    bool   `json:",omitzero"` // it begins with what was put aside, not with what was saved last
	End     string // "stop", or the kind of step at which it crashes: "api", "sink", "disk", "now"
	At      int    `json:",omitzero"` // the number of that step
	Member  int    `json:",omitzero"` // whose term it is
	Emptied bool   `json:",omitzero"` // that one's disk is lost before
	Then    string `json:",omitzero"` // what becomes of a member of a task there: "" is that it is dead, "sleeps", or "on": it runs on
	Wake    int    `json:",omitzero"` // after so many ms it wakes up

	Actions []action `json:"-"`
}

// action is one thing that happens.
type action struct {
	Do       string
	Resource string
	Key      string
	N        int
}

// pause is how long, in milliseconds, the world waits after a change of an object.
func (a action) pause() int {
	switch a.Do {
	case "put", "delete", "recreate", "expire":
		return a.N
	}
	return 0
}

// String is the script as text: a line for the world, each sink and each life, with what is not zero, and one for each
// action. parse reads it back.
func (s script) String() string {
	var b strings.Builder
	line := func(word string, of any) {
		text, _ := json.Marshal(of) // it has no type that could fail
		fmt.Fprintf(&b, "%s %s\n", word, text)
	}
	line("world", s)
	for _, k := range s.Sinks {
		line("sink", k)
	}
	for _, l := range s.Lives {
		line("life", l)
		for _, a := range l.Actions {
			fmt.Fprintf(&b, "  %s %s %s %d\n", a.Do, cmp.Or(a.Resource, "-"), cmp.Or(a.Key, "-"), a.N)
		}
	}
	return b.String()
}

// parse reads what String wrote. Lines that begin with # are comments.
func parse(text string) (s script, err error) {
	for line := range strings.Lines(text) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case word == "" || word[0] == '#':
		case word == "world":
			err = json.Unmarshal([]byte(rest), &s)
		case word == "sink":
			s.Sinks = append(s.Sinks, sinkSpec{})
			err = json.Unmarshal([]byte(rest), &s.Sinks[len(s.Sinks)-1])
		case word == "life":
			s.Lives = append(s.Lives, lifeSpec{})
			err = json.Unmarshal([]byte(rest), &s.Lives[len(s.Lives)-1])
		case len(s.Lives) == 0:
			err = errors.New("an action before the first life")
		default:
			var a action
			_, err = fmt.Sscanf(rest, "%s %s %d", &a.Resource, &a.Key, &a.N)
			a.Do, a.Resource, a.Key = word, strings.TrimPrefix(a.Resource, "-"), strings.TrimPrefix(a.Key, "-")
			life := &s.Lives[len(s.Lives)-1]
			life.Actions = append(life.Actions, a)
		}
		if err != nil {
			return s, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return s, nil
}

// keys are chosen so that the order of a list is not that of namespace and name: '-' and '.' sort below '/'.
func keys() []string { return []string{"a/x", "a-b/x", "a/y", "a.b/x"} }

// generate makes a seed's script: a few objects, a few dozen events, and three lives or four.
func generate(seed uint64) script {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
	how := configurationOf(seed)
	members := generator{Rand: rand.New(rand.NewPCG(seed, 14_000))}
	isTask := members.chance(*membersFlag) && how == ""
	g.wild = g.chance(*wildFlag) && how == "" && !isTask
	s := script{Seed: seed, Late: generator{Rand: rand.New(rand.NewPCG(seed, 2000))}.chance(50)}
	for i := range 1 + g.IntN(3) {
		k := g.sink(i)
		k.Full = pick(generator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}, policies()...)
		s.Sinks = append(s.Sinks, k)
	}
	lives := 2 + g.IntN(3)
	for i := range lives {
		l := g.life(s.Sinks, i, i == lives-1)
		outage := generator{Rand: rand.New(rand.NewPCG(seed, 1000+uint64(i)))}
		if outage.chance(40) {
			l.Actions = slices.Insert(l.Actions, outage.IntN(len(l.Actions)+1), outage.outage(s.Sinks)...)
		}
		failure := generator{Rand: rand.New(rand.NewPCG(seed, 5000+uint64(i)))}
		if (i < lives-1 || len(l.Sinks) > 1) && failure.chance(30) {
			l.Actions = slices.Insert(l.Actions, failure.IntN(len(l.Actions)+1), failure.failure(l.Sinks)...)
		}
		if version := (generator{Rand: rand.New(rand.NewPCG(seed, 7000+uint64(i)))}); version.chance(15) {
			move := action{Do: "version", Resource: pick(version, pods, events)}
			l.Actions = slices.Insert(l.Actions, version.IntN(len(l.Actions)+1), move)
		}
		s.Lives = append(s.Lives, l)
	}
	if many := (generator{Rand: rand.New(rand.NewPCG(seed, 3000))}); many.chance(15) {
		many.interrupt(&s)
	}
	if beside := (generator{Rand: rand.New(rand.NewPCG(seed, 11_000))}); beside.chance(25) {
		beside.snapshots(&s)
	}
	if how != "" {
		generator{Rand: rand.New(rand.NewPCG(seed, 9000))}.configure(&s, how)
	}
	if rules := (generator{Rand: rand.New(rand.NewPCG(seed, 10_000))}); rules.chance(20) {
		for i := 1 + rules.IntN(len(s.Lives)-1); i < len(s.Lives); i++ {
			s.Lives[i].Strict = true
		}
	}
	s.Odd = generator{Rand: rand.New(rand.NewPCG(seed, 4000))}.chance(15)
	s.Half = generator{Rand: rand.New(rand.NewPCG(seed, 13_000))}.chance(*ignoreFlag)
	if back := (generator{Rand: rand.New(rand.NewPCG(seed, 12_000))}); back.chance(*backFlag) && !s.changes(pods) && !s.changes(events) && !isTask {
		back.putBack(&s)
	}
	if gates := (generator{Rand: rand.New(rand.NewPCG(seed, 15_000))}); gates.chance(*gatesFlag) {
		gates.gates(&s)
	}
	if isTask {
		members.takeOver(&s)
		generator{Rand: rand.New(rand.NewPCG(seed, 16_000))}.outlive(&s)
	}
	return s
}

// manyKeys are those of the objects that are there before the first life.
func manyKeys(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("m/%02d", i))
	}
	return all
}

// failure is a sink of the named ones that only a person can mend, and what happens until somebody does.
func (g generator) failure(names string) []action {
	key := string(names[g.IntN(len(names))])
	all := []action{{Do: "broken", Key: key, N: pick(g, 3000, 70_000, 200_000, 700_000)}}
	for range g.IntN(16) {
		all = append(all, action{Do: pick(g, "put", "put", "delete", "delete", "recreate"), Resource: pick(g, pods, pods, events), Key: pick(g, keys()...), N: pick(g, 0, 1, 8)})
		if g.chance(30) {
			all = append(all, pick(g, action{Do: "sleep", N: pick(g, 200, 6000, 70_000, 300_000)}, action{Do: "restart", N: 0}, action{Do: "request"}, action{Do: "bookmark"}, action{Do: "settle"}))
		}
	}
	return all
}

// interrupt puts lives in front in which the initial snapshot, of many pages, is interrupted while its objects
// change. It is chosen by a source of its own.
func (g generator) interrupt(s *script) {
	s.Many = 6 + g.IntN(20)
	all := append(manyKeys(s.Many), keys()...)
	for range 1 + g.IntN(4) {
		l := lifeSpec{Sinks: s.Lives[0].Sinks, End: pick(g, "api", "sink", "disk", "now", "stop", "stop")}
		switch l.End {
		case "api", "sink":
			l.At = 1 + g.IntN(8+s.Many)
		case "disk":
			l.At = 1 + g.IntN(20+8*s.Many)
		}
		for range 1 + g.IntN(8) {
			resource, key, pause := pick(g, pods, pods, events), pick(g, all...), pick(g, 0, 1, 4, 8, 15)
			l.Actions = append(l.Actions, action{Do: pick(g, "put", "put", "put", "delete", "recreate"), Resource: resource, Key: key, N: pause})
			if g.chance(10) {
				l.Actions = append(l.Actions, pick(g, action{Do: "compact"}, action{Do: "fail", N: 1}, action{Do: "cutpage", N: 1}))
			}
		}
		s.Lives = slices.Insert(s.Lives, 0, l)
	}
}

// snapshots asks for full snapshots, of many pages, while the objects change and the server forgets. It is chosen by a
// source of its own.
func (g generator) snapshots(s *script) {
	if s.Many == 0 {
		s.Many = 6 + g.IntN(20)
	}
	all := append(manyKeys(s.Many), keys()...)
	for i := range s.Lives {
		if g.chance(50) {
			continue
		}
		l := &s.Lives[i]
		during := []action{{Do: "settle"}, {Do: "request"}}
		for range 4 + g.IntN(16) {
			resource, key, pause := pick(g, pods, pods, pods, events), pick(g, all...), pick(g, 0, 0, 1, 2, 4)
			during = append(during, action{Do: pick(g, "put", "put", "delete", "recreate"), Resource: resource, Key: key, N: pause})
			if g.chance(25) {
				during = append(during, pick(g,
					action{Do: "compact"}, action{Do: "compact"}, action{Do: "lose", Resource: pods, N: 1}, action{Do: "bookmark"}, action{Do: "restart", N: 0}, action{Do: "restart", N: 1},
					action{Do: "cutpage", N: 1}, action{Do: "fail", N: 1}, action{Do: "request"}, action{Do: "lag", N: pick(g, 5, 20, 60)}))
			}
		}
		l.Actions = slices.Insert(l.Actions, g.IntN(len(l.Actions)+1), during...)
	}
}

// outage is a sink that is away for long, and what happens meanwhile. It is chosen by a source of its own, too.
func (g generator) outage(sinks []sinkSpec) []action {
	key := pick(g, sinks...).Name
	for _, k := range sinks {
		if k.coalesces() && g.chance(60) {
			key = k.Name
		}
	}
	all := []action{{Do: "away", Key: key, N: pick(g, 3000, 20_000, 50_000, 150_000)}}
	for range g.IntN(12) {
		resource, name := pick(g, pods, pods, events), pick(g, keys()...)
		all = append(all, action{Do: pick(g, "put", "put", "delete", "recreate"), Resource: resource, Key: name, N: pick(g, 0, 1, 8)})
		if g.chance(30) {
			all = append(all, pick(g, action{Do: "sleep", N: pick(g, 200, 6000, 31_000)}, action{Do: "restart", N: 0}, action{Do: "request"}, action{Do: "bookmark"}))
		}
	}
	return all
}

// policies are chosen by a source of their own, so that a seed's other choices do not depend on them.
func policies() []string {
	return []string{"block", "block", "block", "spool", "spool", "spool", "coalesce", "coalesce", "coalesce/600"}
}

type generator struct {
	*rand.Rand
	wild bool // disasters happen
}

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) sink(i int) sinkSpec {
	k := sinkSpec{Name: string(rune('a' + i)), Partitions: 1, Takes: "both", Queue: pick(g, 1, 2, 4, 100)}
	if g.chance(40) {
		k.Partitions = 3
	}
	if i > 0 && g.chance(40) {
		k.Takes = pick(g, pods, events)
	}
	if g.chance(10) {
		k.Resync = pick(g, 20, 60)
	}
	k.Rejects = g.chance(10)
	return k
}

func (g generator) life(sinks []sinkSpec, i int, last bool) lifeSpec {
	l := lifeSpec{End: pick(g, "api", "sink", "sink", "disk", "disk", "now", "stop")}
	for _, k := range sinks {
		if last || k.Name == "a" || g.chance(85) {
			l.Sinks += k.Name
		}
	}
	switch l.End {
	case "api":
		l.At = 1 + g.IntN(30)
	case "sink":
		l.At = 1 + g.IntN(25)
	case "disk":
		l.At = 1 + g.IntN(120)
	}
	for range 3 + g.IntN(9) {
		l.Actions = append(l.Actions, g.action(last, sinks))
	}
	if last {
		l.End, l.At = "stop", 0
	}
	return l
}

// action is a change of an object, mostly, or a fault.
func (g generator) action(last bool, sinks []sinkSpec) action {
	resource := pods
	if g.chance(30) {
		resource = events
	}
	key := pick(g, keys()...)
	pause := pick(g, 0, 0, 1, 2, 4, 8, 15)
	switch n := g.IntN(100); {
	case n < 38:
		return action{Do: "put", Resource: resource, Key: key, N: pause}
	case n < 50:
		return action{Do: "delete", Resource: resource, Key: key, N: pause}
	case n < 55:
		return action{Do: "recreate", Resource: resource, Key: key, N: pause}
	case n < 59:
		return action{Do: "expire", Resource: events, N: pause}
	case n < 68:
		return action{Do: "sleep", N: pick(g, 1, 2, 5, 20, 200, 5000)}
	case n < 73:
		return action{Do: "settle"}
	case n < 84 || last:
		return g.harmless()
	case n < 86:
		return action{Do: "request"}
	case n < 93:
		return action{Do: pick(g, "before", "after", "partial", "partial", "stall", "openfails"), Key: pick(g, sinks...).Name, N: 1 + g.IntN(2)}
	}
	return g.fault()
}

// harmless is what every server does now and then.
func (g generator) harmless() action {
	return pick(g,
		action{Do: "bookmark"}, action{Do: "bookmark"},
		action{Do: "restart", N: g.IntN(2)},
		action{Do: "compact"},
		action{Do: "end"},
		action{Do: "cut", N: 1 + g.IntN(3)},
	)
}

func (g generator) fault() action {
	if g.wild {
		return g.disaster()
	}
	return pick(g,
		action{Do: "refuse", N: 1 + g.IntN(3)},
		action{Do: "fail", N: 1 + g.IntN(3)},
		action{Do: "empty", N: 1 + g.IntN(7)},
		action{Do: "gonestatus", N: 1},
		action{Do: "cutpage", N: 1},
		action{Do: "duplicate", Resource: pick(g, pods, events), N: 1},
		action{Do: "lose", Resource: pick(g, pods, events), N: 1},
		action{Do: "full", N: pick(g, 100, 2000)},
		action{Do: "deaf"},
	)
}

// disaster is what happens once in the life of a cluster.
func (g generator) disaster() action {
	return pick(g,
		action{Do: "full", N: pick(g, 100, 2000)},
		action{Do: "truncate", Key: "a", N: 1 + g.IntN(4)},
		action{Do: pick(g, "restore", "rewrite"), N: 1 + g.IntN(6)},
		action{Do: "another", N: pick(g, -20, -2, 3)},
	)
}

// coalesces says whether the sink is told of the newest state alone.
func (k sinkSpec) coalesces() bool { return strings.HasPrefix(k.Full, "coalesce") }

func (k sinkSpec) takes(resource string) bool { return k.Takes == "both" || k.Takes == resource }
