package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
)

// world is one run of a script.
type world struct {
	script script
	server *apiServer // set once
	judge  *judge
	task   *task // nil where the exporter is alone

	mu         sync.Mutex // guards the following
	uids       int
	logs       map[string]*sinkLog
	disks      []*vfs.MemFS // of each member, or of the exporter alone: what the next life finds
	life       *life
	kept       *keptState // nil is none
	steps      []step
	violations []string
	began      time.Time
}

// step is one line of what happened.
type step struct {
	at         time.Duration
	life       int
	kind, text string
}

func newWorld(s script) *world {
	w := &world{script: s, logs: map[string]*sinkLog{}, began: time.Now()}
	for _, spec := range s.Sinks {
		w.logs[spec.Name] = newSinkLog(w, spec)
	}
	for range max(1, s.Members) {
		w.disks = append(w.disks, newDisk())
	}
	if s.Members > 0 {
		w.task = &task{broker: &stateBroker{world: w}}
	}
	w.server = newAPIServer(w)
	for i, key := range manyKeys(s.Many) {
		w.server.etcd.put([]string{pods, pods, events}[i%3], key)
	}
	w.judge = newJudge(w)
	return w
}

func newDisk() *vfs.MemFS {
	disk := vfs.NewCrashableMem()
	disk.TestingSetDiskUsage(room())
	return disk
}

func room() vfs.DiskUsage { return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40} }

func noRoom() vfs.DiskUsage { return vfs.DiskUsage{AvailBytes: 1, TotalBytes: 1 << 40} }

// violate notes that an invariant does not hold.
func (w *world) violate(invariant, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violateLocked(invariant, format, args...)
}

func (w *world) violateLocked(invariant, format string, args ...any) {
	w.violations = append(w.violations, invariant+": "+fmt.Sprintf(format, args...))
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

// run plays the script and judges. It returns what is violated.
func (w *world) run() []string {
	defer w.retire(anyone)
	for i, spec := range w.script.Lives {
		w.play(i, spec, false)
		for w.life.beginsAnew() && !w.failed() { // it begins anew
			spec.Actions, spec.Back = nil, false
			w.play(i, spec, true)
		}
		if w.failed() {
			return w.violations
		}
	}
	w.judge.final()
	return w.violations
}

// play runs one life. A life that ends early leaves the rest of its actions to happen while nobody looks.
func (w *world) play(i int, spec lifeSpec, again bool) {
	if spec.Back {
		w.putBack()
	}
	l := newLife(w, i, spec, w.nextMember(spec, again))
	w.life = l
	last := i == len(w.script.Lives)-1
	for _, g := range w.logs {
		if last { // it must not end since the last sink is stopped
			g.broken = time.Time{}
		}
	}
	go l.run()
	for _, a := range spec.Actions {
		w.do(l, a)
	}
	w.retire(anyone)
	if last {
		w.calm(l)
	}
	switch {
	case l.isOver():
	case spec.End == "now":
		l.end("crash")
	default:
		l.stop()
	}
	if w.leave(l) {
		return
	}
	l.await()
	l.off()
	w.judge.afterLife(l)
}

// calm heals everything and waits until nothing is left to do. Where the server lost an event of a watch, only a
// reconcile can find out: the server restarts, which costs a list.
func (w *world) calm(l *life) {
	w.act(l, action{Do: "end"}) // a watch that was opened between a restore and the question where the server stands
	l.pause(time.Minute)
	w.mu.Lock()
	w.heal()
	if len(w.server.lost[pods])+len(w.server.lost[events]) > 0 {
		w.server.etcd.rev++
		w.server.etcd.compacted = w.server.etcd.rev
		w.server.restart(true)
	}
	w.mu.Unlock()
	l.pause(4 * time.Minute)
	if l.broke || slices.ContainsFunc(w.script.Sinks, func(k sinkSpec) bool { return w.script.isGated(k.Name) }) {
		// what is stopped is tried again every ten minutes, and a snapshot waits a minute for a sink with each page
		l.pause(15 * time.Minute)
	}
}

// heal takes all ordered faults back; the caller holds mu.
func (w *world) heal() {
	s := w.server
	s.refuse, s.fail, s.empty, s.goneStatus, s.cutPage = 0, 0, 0, 0, 0
	clear(s.drop)
	clear(s.duplicate)
	for _, g := range w.logs {
		g.registry.heal()
		g.before, g.after, g.partial, g.stall, g.openFails, g.away, g.broken = 0, 0, 0, 0, 0, time.Time{}, time.Time{}
	}
	if w.task != nil {
		w.task.broker.away, w.task.broker.failing = time.Time{}, 0
	}
	w.life.fs.TestingSetDiskUsage(room())
}

// do makes one action happen.
func (w *world) do(l *life, a action) {
	switch a.Do {
	case "sleep":
		l.pause(time.Duration(a.N) * time.Millisecond)
		return
	case "settle":
		l.pause(time.Minute)
		return
	case "full":
		l.fill(time.Duration(a.N) * time.Millisecond)
		return
	case "request":
		l.request()
		return
	case "step": // let everybody run until all wait for time
		synctest.Wait()
		return
	}
	w.act(l, a)
	if n := a.pause(); n > 0 {
		l.pause(time.Duration(n) * time.Millisecond)
	}
}

func (w *world) act(l *life, a action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.noteLocked("do", strings.TrimSpace(fmt.Sprintf("%s %s %s %d", a.Do, a.Resource, a.Key, a.N)))
	if !w.change(a) && !w.faultServer(a) && !w.faultSink(a) && !w.faultLog(a) {
		w.violateLocked("script", "unknown action %q", a.Do)
	}
	w.server.wake()
}

// change changes the cluster.
func (w *world) change(a action) bool {
	e := w.server.etcd
	for resource := range w.server.hold {
		if w.server.watched[resource] && change.CompareVersions(w.judge.hereOf(w.life, resource), strconv.Itoa(e.rev)) <= 0 {
			delete(w.server.hold, resource)
		}
	}
	if len(w.server.hold) > 0 && slices.Contains([]string{"put", "delete", "recreate", "expire", "compact"}, a.Do) {
		return true
	}
	switch a.Do {
	case "put":
		e.put(a.Resource, a.Key)
	case "delete":
		e.remove(a.Resource, a.Key)
	case "recreate":
		e.remove(a.Resource, a.Key)
		e.put(a.Resource, a.Key)
	case "expire":
		var all []string
		for _, ev := range e.at(events, e.rev) {
			all = append(all, ev.key)
		}
		e.remove(events, all...)
	case "compact":
		e.rev++
		e.compacted = e.rev
	default:
		return false
	}
	return true
}

// faultServer does something to the API server.
func (w *world) faultServer(a action) bool {
	s := w.server
	switch a.Do {
	case "bookmark":
		for b := range s.watches {
			b.bookmark = true
		}
	case "restart":
		s.restart(a.N == 0)
	case "end":
		for b := range s.watches {
			b.end(true)
		}
	case "cut":
		for b := range s.watches {
			b.cut = a.N
		}
	case "refuse":
		s.refuse = a.N
	case "fail":
		s.fail = a.N
	case "empty":
		s.empty = a.N
		for b := range s.watches {
			b.end(true)
		}
	case "gonestatus":
		s.goneStatus = a.N
	case "cutpage":
		s.cutPage = a.N
	case "duplicate":
		s.duplicate[a.Resource] = a.N
	case "lose":
		s.drop[a.Resource] = a.N
	case "lag":
		s.lag(time.Duration(a.N) * time.Millisecond)
	case "version":
		s.prefer(w.life, a.Resource)
	case "deaf":
		s.etcd.rev++
		s.deaf = s.etcd.rev
		s.restart(true)
	case "restore":
		if w.judge.upToDate(w.life) {
			s.etcd.restore(max(3, s.etcd.rev-a.N))
			s.begin()
		}
	case "rewrite":
		if known := w.judge.known(w.life); w.judge.upToDate(w.life) {
			s.etcd.restore(max(3, s.etcd.rev-a.N))
			s.etcd.rewrite(known)
			s.begin()
		}
	case "another":
		s.etcd.remake(max(3, s.etcd.rev+a.N))
		s.begin()
	default:
		return false
	}
	return true
}

// faultSink does something to a sink's log.
func (w *world) faultSink(a action) bool {
	g := w.logs[a.Key]
	if g == nil {
		return false
	}
	switch a.Do {
	case "shut":
		g.registry.lose(a.Resource, time.Duration(a.N)*time.Millisecond)
		return true
	case "before":
		g.before = a.N
	case "after":
		g.after = a.N
	case "partial":
		g.partial = a.N
	case "stall":
		g.stall = 1
	case "away":
		g.away = time.Now().Add(time.Duration(a.N) * time.Millisecond)
	case "broken":
		g.broken = time.Now().Add(time.Duration(a.N) * time.Millisecond)
		w.life.broke = true
	case "openfails":
		g.openFails = a.N
	case "truncate":
		w.truncate(g, a.N)
	default:
		return false
	}
	return true
}

// faultLog does something to the log of the state.
func (w *world) faultLog(a action) bool {
	switch a.Do {
	case "logaway":
		w.task.broker.away = time.Now().Add(time.Duration(a.N) * time.Millisecond)
	case "logfails":
		w.task.broker.failing = a.N
	default:
		return false
	}
	return true
}

// truncate makes the log lose records, down to below the saved mark: what is lost between the mark and the positions,
// where another stream keeps the mark back, is not noticed by any sink. Once a life, since the saved mark goes back
// then.
func (w *world) truncate(g *sinkLog, n int) {
	if w.life.truncated || !g.reaches(w.judge.marks[g.name]) {
		return
	}
	g.truncate(n)
	for g.reaches(w.judge.marks[g.name]) && len(g.all()) > 0 {
		g.truncate(1)
	}
	w.life.truncated, w.kept = true, nil // the log grows over the older mark
}

// report is what a person needs to see what went wrong.
func (w *world) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n--- script ---\n%s--- what happened ---\n", strings.Join(w.violations, "\n"), w.script)
	for _, s := range w.steps {
		fmt.Fprintf(&b, "%12s %d %-5s %s\n", s.at, s.life, s.kind, s.text)
	}
	return b.String()
}

// randomOf is a source for one life of a script.
func randomOf(seed uint64, life int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(life)+1)) }
