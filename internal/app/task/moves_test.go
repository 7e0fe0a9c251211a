package task

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// A world of tasks, played step by step: each has a log of its state and a stream, which one term at a time may write
// to. Terms begin with a configuration, which may be an older one, read the logs of others one after the other, take,
// open, give, deliver and save, and die or sleep in between. Whoever writes a change of a resource must write the next
// one.

// held is what a state has.
type held struct {
	at    map[string]int // by resource: the last change that was written
	mark  int            // in the stream
	gifts map[string]checkpoint.Gift
	aside map[string]int // what was put aside
	taken map[string]map[int]uint64
}

func (h *held) clone() held {
	c := held{at: maps.Clone(h.at), mark: h.mark, gifts: maps.Clone(h.gifts), aside: maps.Clone(h.aside), taken: map[string]map[int]uint64{}}
	for resource, by := range h.taken {
		c.taken[resource] = maps.Clone(by)
	}
	return c
}

func (h *held) holding() checkpoint.Holding {
	of := checkpoint.Holding{Has: map[checkpoint.Key]bool{}, Gifts: map[checkpoint.Key]checkpoint.Gift{}, Taken: map[checkpoint.Key]map[int]uint64{}}
	for resource := range h.at {
		of.Has[checkpoint.Key{Sink: "s", Resource: resource}] = h.gifts[resource].To == 0
	}
	for resource, gift := range h.gifts {
		if gift.To != 0 {
			of.Gifts[checkpoint.Key{Sink: "s", Resource: resource}] = gift
		}
	}
	for resource, by := range h.taken {
		of.Taken[checkpoint.Key{Sink: "s", Resource: resource}] = by
	}
	return of
}

// movedTask is a task's log and stream, and who may write there.
type movedTask struct {
	log           held
	logOf, sinkOf int // the terms
	stream        []movedChange
}

type movedChange struct {
	resource string
	number   int
}

// term is an exporter's with a task. Its steps are in this order.
type movedTerm struct {
	number, task, tasks int
	state               held
	others              map[int]held // that were read
	unread              []int
	phase               movedPhase
	late                []movedChange // that the state has, and the stream has later, or never: only without "order"
}

type movedPhase int

const (
	reading   movedPhase = iota // the logs of others: -> taking
	taking                      // -> opening
	opening                     // the sink, with the proof that the log is still ours: -> giving
	giving                      // -> following, again with nothing to give
	following                   // until it dies
)

type movedWorld struct {
	*rand.Rand
	without string
	tasks   map[int]*movedTask
	terms   []*movedTerm
	written map[string]int // by resource
	count   int            // of terms
	now     int            // tasks of the configuration
	before  int
	wrong   string
}

var movedResources = []string{"a", "b", "c", "d", "e"}

// owner is the task that has the resource in a configuration of so many.
func owner(resource string, tasks int) int { return (int(resource[0])*7)%tasks + 1 }

func playMoves(seed uint64, without string) *movedWorld {
	w := &movedWorld{Rand: rand.New(rand.NewPCG(seed, 46)), without: without, tasks: map[int]*movedTask{}, written: map[string]int{}, now: 1 + int(seed%3)}
	w.before = w.now
	for n := 1; n <= 5; n++ {
		empty := held{at: map[string]int{}, gifts: map[string]checkpoint.Gift{}, aside: map[string]int{}, taken: map[string]map[int]uint64{}}
		w.tasks[n] = &movedTask{log: empty}
	}
	for _, resource := range movedResources { // all have begun, and are saved
		w.tasks[owner(resource, w.now)].log.at[resource] = 0
	}
	for range 400 {
		switch w.IntN(10) {
		case 0:
			w.begin()
		case 1:
			if w.IntN(6) == 0 {
				w.before, w.now = w.now, 1+w.IntN(4)
			}
		case 2:
			if n := len(w.terms); n > 0 && w.IntN(3) == 0 {
				w.terms = slices.Delete(w.terms, 0, 1+w.IntN(n)/2)
			}
		default:
			if n := len(w.terms); n > 0 {
				w.step(w.terms[n-1-min(w.IntN(n), w.IntN(n))])
			}
		}
	}
	w.before, w.terms = w.now, nil
	for range 12 { // longer than any way of a resource
		w.finish()
	}
	return w
}

// begin begins a term, of whichever task has something or is configured.
func (w *movedWorld) begin() {
	w.count++
	t := &movedTerm{number: w.count, task: 1 + w.IntN(5), tasks: w.now, others: map[int]held{}}
	if w.IntN(4) == 0 {
		t.tasks = w.before
	}
	of := w.tasks[t.task]
	of.logOf, t.state = t.number, of.log.clone()
	t.unread = w.besides(t.task)
	w.Shuffle(len(t.unread), func(i, j int) { t.unread[i], t.unread[j] = t.unread[j], t.unread[i] })
	w.terms = append(w.terms, t)
}

// besides are the other tasks.
func (w *movedWorld) besides(task int) []int {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.tasks)), func(n int) bool { return n == task })
}

// save writes the log, false where the term is over.
func (w *movedWorld) save(t *movedTerm) bool {
	of := w.tasks[t.task]
	if of.logOf != t.number && w.without != "fence" {
		w.terms = slices.DeleteFunc(w.terms, func(other *movedTerm) bool { return other == t })
		return false
	}
	of.log = t.state.clone()
	return true
}

func (w *movedWorld) step(t *movedTerm) {
	of := w.tasks[t.task]
	switch t.phase {
	case reading:
		if len(t.unread) > 0 {
			n := t.unread[0]
			t.others[n], t.unread = w.tasks[n].log.clone(), t.unread[1:]
			return
		}
		t.phase = taking
	case taking:
		w.take(t)
		if t.phase = opening; w.IntN(2) == 0 {
			w.save(t)
		}
	case opening:
		of.sinkOf = t.number
		from := t.state.mark
		if w.IntN(8) == 0 { // what the stream had of resources that have gone elsewhere is found again
			from = 0
		}
		for _, c := range of.stream[from:] {
			t.state.at[c.resource] = max(t.state.at[c.resource], c.number)
		}
		if w.save(t) { // the proof
			t.phase = giving
		}
	case giving:
		w.give(t)
		t.phase = following
		w.save(t)
	case following:
		late := t.late
		t.late = nil
		for _, c := range late {
			w.write(t, c)
		}
		if w.IntN(4) == 0 {
			w.save(t)
			return
		}
		if w.IntN(8) == 0 { // it looks again, for what it waits for
			*t = movedTerm{
				number: t.number, task: t.task, tasks: t.tasks, state: t.state, others: map[int]held{}, phase: reading, unread: w.besides(t.task),
			}
			return
		}
		for _, resource := range slices.Sorted(maps.Keys(t.state.at)) {
			if owner(resource, t.tasks) == t.task && w.IntN(2) == 0 {
				w.deliver(t, resource)
			}
		}
	}
}

func (w *movedWorld) take(t *movedTerm) {
	all := map[int]checkpoint.Holding{t.task: t.state.holding()}
	for n, h := range t.others {
		all[n] = h.holding()
	}
	for _, resource := range movedResources {
		isOurs, given := owner(resource, t.tasks) == t.task, false
		for n, h := range t.others {
			gift := h.gifts[resource]
			given = given || gift.To == t.task && t.state.taken[resource][n] < gift.Number
		}
		_, has := t.state.at[resource]
		if has = has && t.state.gifts[resource].To == 0; has || !isOurs && !given {
			continue
		}
		step := Decide(t.task, resource, []string{"s"}, all)
		from, takes := step.Take["s"]
		switch {
		case w.without == "look":
			t.state.at[resource] = 0
		case step.Wait != 0 && w.without != "wait":
		case takes:
			h := t.others[from]
			t.state.at[resource] = h.aside[resource]
			if t.state.taken[resource] == nil {
				t.state.taken[resource] = map[int]uint64{}
			}
			if own := t.state.gifts[resource]; own.To != 0 {
				t.state.gifts[resource] = checkpoint.Gift{Number: own.Number}
			}
			if w.without != "numbers" {
				t.state.taken[resource][from] = h.gifts[resource].Number
			}
		default:
			t.state.at[resource] = 0
		}
	}
}

func (w *movedWorld) give(t *movedTerm) {
	of := w.tasks[t.task]
	for _, resource := range slices.Sorted(maps.Keys(t.state.at)) {
		if given := t.state.gifts[resource]; given.To != 0 && w.without != "once" {
			delete(t.state.at, resource) // a stream that was read anew has told of it
		} else if to := owner(resource, t.tasks); to != t.task {
			t.state.gifts[resource] = checkpoint.Gift{To: to, Number: t.state.gifts[resource].Number + 1}
			t.state.aside[resource] = t.state.at[resource]
			delete(t.state.at, resource)
			t.state.mark = len(of.stream)
		}
	}
}

// deliver writes the next change of the resource.
func (w *movedWorld) deliver(t *movedTerm, resource string) {
	of := w.tasks[t.task]
	if of.sinkOf != t.number && w.without != "fence" {
		w.terms = slices.DeleteFunc(w.terms, func(other *movedTerm) bool { return other == t })
		return
	}
	next := t.state.at[resource] + 1
	t.state.at[resource] = next
	if w.without == "order" && w.IntN(4) == 0 {
		t.late = append(t.late, movedChange{resource, next})
		return
	}
	w.write(t, movedChange{resource, next})
}

// write puts a change into the stream.
func (w *movedWorld) write(t *movedTerm, c movedChange) {
	of := w.tasks[t.task]
	if of.sinkOf != t.number && w.without != "fence" {
		return
	}
	if of.stream = append(of.stream, c); c.number != w.written[c.resource]+1 && w.wrong == "" {
		w.wrong = fmt.Sprintf("term %d of task %d writes change %d of %s, want %d", t.number, t.task, c.number, c.resource, w.written[c.resource]+1)
	}
	w.written[c.resource] = max(c.number, w.written[c.resource])
}

// finish lets one term of each task with the newest configuration do all that it can.
func (w *movedWorld) finish() {
	for n := 1; n <= 5; n++ {
		w.terms = nil
		w.begin()
		t := w.terms[0]
		*t = movedTerm{number: t.number, task: n, tasks: w.now, others: map[int]held{}, phase: taking}
		of := w.tasks[n]
		of.logOf, t.state = t.number, of.log.clone()
		for _, other := range w.besides(n) {
			t.others[other] = w.tasks[other].log.clone()
		}
		for t.phase != following {
			w.step(t)
		}
		for _, resource := range movedResources {
			if _, has := t.state.at[resource]; has && owner(resource, w.now) == n {
				w.deliver(t, resource)
			}
		}
		w.save(t)
	}
}

// stuck are the resources that nobody delivers in the end.
func (w *movedWorld) stuck() (names []string) {
	for _, resource := range movedResources {
		if _, has := w.tasks[owner(resource, w.now)].log.at[resource]; !has {
			names = append(names, resource)
		}
	}
	return names
}

// TestI3I4I10ResourcesGoBetweenTasksWithEveryChangeOnce, whatever dies, sleeps, and is configured differently.
func TestI3I4I10ResourcesGoBetweenTasksWithEveryChangeOnce(t *testing.T) {
	seeds := uint64(3000)
	if n, err := strconv.ParseUint(os.Getenv("KUBECDC_MOVES"), 10, 64); err == nil {
		seeds = n
	}
	moves := 0
	for seed := range seeds {
		w := playMoves(seed, "")
		if stuck := w.stuck(); w.wrong != "" || len(stuck) > 0 {
			t.Fatalf("seed %d: %s, and nobody has %v", seed, w.wrong, stuck)
		}
		for _, task := range w.tasks {
			for _, gift := range task.log.gifts {
				moves += int(gift.Number)
			}
		}
	}
	t.Logf("%d worlds, %d moves", seeds, moves)
}

// TestEveryRuleOfMovesIsNeeded: without it, something is wrong within a thousand worlds.
func TestEveryRuleOfMovesIsNeeded(t *testing.T) {
	for _, rule := range []string{"fence", "look", "wait", "numbers", "once", "order"} {
		found := false
		for seed := uint64(0); seed < 1000 && !found; seed++ {
			w := playMoves(seed, rule)
			found = w.wrong != "" || len(w.stuck()) > 0
		}
		if !found {
			t.Errorf("nothing is wrong without the rule %q", rule)
		}
	}
}
