package sim

import (
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// task is an exporter with several members, of which one leads. Each life is a term of one of them. The Lease is a hint
// here, too: a member that has lost it may be dead, or sleep, as after a SIGSTOP, until it wakes up and goes on, or
// run on, since it does not know. It is dead when the next leader's life ends, or when it is to lead again.
type task struct {
	broker *stateBroker
	ousted []*life // that have lost the lead and are not dead; of the world's goroutine

	complete bool // the log of the state has everything that has begun; guarded by the world's lock
}

// What a script may take out of a task, each of which must be noticed.
const (
	withoutFence = "fence" // whoever opened a log once may write there, though another one has opened it since
	withoutOrder = "order" // what a sink was given is saved, also in the log of the state, before the sink's log has it
	withoutProof = "proof" // a member that has opened a sink writes there without a proof that it still leads
)

// takeOver makes the lives of a script terms of members. Another history, lost records and events are not played with
// it, nor is another configuration of the streams. It chooses by a source of its own.
func (g generator) takeOver(s *script) {
	s.Members = 2 + g.IntN(2)
	for i := range s.Lives {
		l := &s.Lives[i]
		l.Member, l.Emptied = g.IntN(s.Members), g.chance(30)
		l.Actions = slices.DeleteFunc(l.Actions, func(a action) bool { return a.Do == "lose" })
		for range g.IntN(3) {
			fault := pick(g, action{Do: "logaway", N: pick(g, 300, 3000, 60_000)}, action{Do: "logfails", N: 1 + g.IntN(2)})
			l.Actions = slices.Insert(l.Actions, g.IntN(len(l.Actions)+1), fault)
		}
		if i == len(s.Lives)-1 || l.End == "stop" {
			continue
		}
		if g.chance(15) {
			l.End, l.At = "log", 1+g.IntN(12)
		}
		l.Then, l.Wake = pick(g, "", "sleeps", "sleeps", "on"), pick(g, 0, 20, 200, 2000, 8000, 90_000)
	}
}

// outlive makes a member sleep that has lost the lead, while a sink is away or stopped for which it has much. The
// server forgets, so that the next leader tells that sink the difference alone. Then the sleeper wakes up and opens it.
// A life before makes the sink one that has begun. It is chosen by a source of its own.
func (g generator) outlive(s *script) {
	if g.chance(50) {
		return
	}
	first := s.Lives[0]
	first.End, first.At, first.Then, first.Actions = "stop", 0, "", slices.Concat(g.changes(), []action{{Do: "settle"}})
	s.Lives = slices.Insert(s.Lives, 0, first)
	i := 1 + g.IntN(len(s.Lives)-2)
	l, next := &s.Lives[i], &s.Lives[i+1]
	key := string(first.Sinks[g.IntN(len(first.Sinks))])
	l.Sinks, next.Sinks = first.Sinks, first.Sinks
	if len(next.Sinks) == 1 { // a run ends whose last sink is stopped
		next.Actions = slices.DeleteFunc(next.Actions, func(a action) bool { return a.Do == "broken" })
	}
	fault, lasts := "away", 2000
	if len(l.Sinks) > 1 && g.chance(50) {
		fault, lasts = "broken", 70_000
	}
	s.Late = true
	l.End, l.Then, l.Wake = "now", "sleeps", lasts+pick(g, 4000, 20_000)
	l.Actions = slices.Concat([]action{{Do: fault, Key: key, N: 700_000}}, l.Actions, g.changes())
	next.Member = (l.Member + 1) % s.Members
	meanwhile := slices.Concat([]action{{Do: "compact"}}, g.changes(), []action{{Do: fault, Key: key}, {Do: "sleep", N: lasts}}, g.changes())
	next.Actions = slices.Concat(meanwhile, []action{{Do: "sleep", N: l.Wake}}, next.Actions)
	if i+1 < len(s.Lives)-1 {
		next.End, next.At = "now", 0
	}
}

// changes are some of few objects.
func (g generator) changes() (all []action) {
	for range 3 + g.IntN(10) {
		do, resource := pick(g, "put", "put", "delete", "recreate"), pick(g, pods, pods, events)
		all = append(all, action{Do: do, Resource: resource, Key: pick(g, keys()...), N: pick(g, 0, 1, 8)})
	}
	return all
}

// nextMember is who lives next. It is the one before, with its disk, where a run of the same process begins anew, and
// where the log of the state lacks what has begun, which does not lag (I11).
func (w *world) nextMember(spec lifeSpec, again bool) int {
	t := w.task
	if t == nil {
		return 0
	}
	w.mu.Lock()
	complete := t.complete
	w.mu.Unlock()
	next := spec.Member
	if w.life != nil && (again || !complete) {
		next, spec.Emptied = w.life.member, false
	}
	if w.retire(func(l *life) bool { return l.member == next }); spec.Emptied {
		w.disks[next] = newDisk()
	}
	return next
}

// leave ends the term of a life that has lost the lead, and says whether it has.
func (w *world) leave(l *life) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.ousted || l.dead {
		return false
	}
	w.task.ousted = append(w.task.ousted, l)
	return true
}

// retire ends those of the members that have lost the lead, and waits for them.
func (w *world) retire(which func(*life) bool) {
	if w.task == nil {
		return
	}
	w.task.ousted = slices.DeleteFunc(w.task.ousted, func(l *life) bool {
		if !which(l) {
			return false
		}
		l.die("the node is gone")
		l.await()
		return true
	})
}

func anyone(*life) bool { return true }

// isLeader says whether the life has the lead. The caller holds the lock.
func (l *life) isLeader() bool { return l.world.life == l }

// mayEnd says whether the life may end at its step: a member loses the lead once, and when what has begun is in the log
// of the state. The caller holds the lock.
func (l *life) mayEnd() bool {
	if t := l.world.task; t != nil {
		return t.complete && !l.ousted
	}
	return l.counts[l.spec.End] == l.spec.At
}

// endLocked ends the life where the script says so, or only its lead.
func (l *life) endLocked(text string) error {
	if l.spec.Then == "" || !l.knowsAll() {
		l.dieLocked(text)
		return errDead
	}
	l.noteLocked("lead", "lost, and the member "+map[string]string{"sleeps": "sleeps", "on": "runs on"}[l.spec.Then])
	l.ousted = true
	if close(l.over); l.spec.Then == "sleeps" {
		l.asleep = make(chan struct{})
		time.AfterFunc(time.Duration(l.spec.Wake)*time.Millisecond, l.wake)
	}
	return nil
}

// knowsAll says whether the life begins nothing that the log of the state does not have.
func (l *life) knowsAll() bool {
	isNew := func(k sinkSpec) bool { return l.has(k.Name) && l.world.judge.marks[k.Name] == "" }
	return l.world.task.complete && !slices.ContainsFunc(l.world.script.Sinks, isNew)
}

// wake ends the sleep.
func (l *life) wake() {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		l.noteLocked("wake", "and it goes on")
	}
	close(l.asleep)
	l.asleep = nil
}

// awake returns when the member does not sleep: what it asks or says meanwhile is asked and said then.
func (l *life) awake() error {
	l.world.mu.Lock()
	asleep := l.asleep
	l.world.mu.Unlock()
	if asleep == nil {
		return nil
	}
	select {
	case <-asleep:
		return nil
	case <-l.died:
		return errDead
	}
}

// shutOut ends the term of a life that somebody has fenced: there is no use in delivering what it has.
func (l *life) shutOut() {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if l.world.task != nil && !l.dead {
		l.noteLocked("fence", "the term is over")
		l.fenced = true
		l.lose()
		l.cancel()
	}
}

// beginsAnew says whether the leader's run ended by itself, so that the next one follows in the same process.
func (l *life) beginsAnew() bool {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.late() || l.fenced && !l.crashed && !l.ousted
}

// noteComplete notes what of all that has begun the log has: a state that was opened may lack a sink or a stream.
func (l *life) noteComplete(written bool) {
	t := l.world.task
	if t == nil || !l.isLeader() || l.ousted {
		return
	}
	t.complete = l.begun() && (t.complete || written)
}

// replaceDisk gives the life an empty disk.
func (l *life) replaceDisk() {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		l.fs = newDisk()
	}
}

func (l *life) disk() *vfs.MemFS {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.fs
}

// errShutOut is what a member is told that another one has fenced.
var errShutOut = &sink.PermanentError{Fenced: true, Err: errFenced}

// takeOver makes the life the one that writes the log.
func (s *logSink) takeOver(at *sink.Opening) {
	if s.life.world.task == nil {
		return
	}
	if s.log.owner = s.life; at.Again {
		return
	}
	if at.Mark == "" {
		s.life.world.judge.joins(s.log)
	}
}

// isFenced says whether another member has opened the log since, or has written what this one did not.
func (s *logSink) isFenced() bool {
	if s.life.world.script.Without == withoutFence || s.log.owner == nil {
		return false
	}
	if len(s.log.partitions) > 1 {
		return s.log.owner != s.life
	}
	return s.known && s.end != s.log.mark() && s.log.owner != s.life
}

// hurry takes a batch that the log has a little later, or never if the life ends before: what no sink does.
func (s *logSink) hurry(batch []sink.Message) (sink.Mark, error) {
	w := s.life.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.life.dead {
		return "", errDead
	}
	for _, m := range batch {
		m.Value = slices.Clone(m.Value) // the pipeline's, from now on
		s.hurried = append(s.hurried, m)
	}
	time.AfterFunc(time.Duration(20+s.life.random.IntN(400))*time.Millisecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.catchUp()
	})
	return s.log.mark(), nil
}

// catchUp gives the log what the sink was given. The caller holds the lock.
func (s *logSink) catchUp() {
	if batch := s.hurried; len(batch) > 0 && !s.life.dead && s.life.asleep == nil && !s.isFenced() {
		s.hurried = nil
		_, _ = s.store(batch, len(batch), "") // a life that ends here has lost them
	}
}

// hurries says whether the sink answers before its log has what it was given.
func (s *logSink) hurries() bool {
	return s.life.world.task != nil && s.life.world.script.Without == withoutOrder && !s.log.rejects
}
