package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// life is one life of the exporter: the real line, from open to stop or crash.
type life struct {
	world   *world
	number  int
	spec    lifeSpec
	fs      *vfs.MemFS // the disk of this life; a crash leaves a clone of it to the next
	member  int        // of a task, whose disk it has
	fenced  bool       // another member has ended its term
	died    chan struct{}
	over    chan struct{} // closed when it is dead or has lost the lead
	done    chan struct{}
	desk    pipeline.Desk
	broke   bool // a sink, for a while; of the world's goroutine
	wasFull bool // the disk, for a while; of the world's goroutine
	cancel  context.CancelFunc
	ctx     context.Context
	lose    context.CancelFunc
	lost    context.Context // ends with the term, but not with a stop

	// guarded by the world's lock
	random    *rand.Rand
	counts    map[string]int
	truncated bool // a log, in this life
	dead      bool // nobody sees any more what it does
	crashed   bool
	opened    bool          // the state, and the judge has seen it
	ousted    bool          // it has lost the lead
	asleep    chan struct{} // closed when it wakes up; nil while it does not sleep
	err       error         // of the run
	store     *checkpoint.Store
	sessions  []served
}

// served is the session of a resource's stream.
type served struct {
	resource string
	session  *source.SharedInformer
}

// errDead is what all I/O of a life returns after its end.
var errDead = &sink.PermanentError{Err: errors.New("the process is dead")}

func newLife(w *world, number int, spec lifeSpec, member int) *life {
	ctx, cancel := context.WithCancel(context.Background())
	lost, lose := context.WithCancel(context.Background())
	l := &life{
		lost: lost, lose: lose,
		world: w, number: number, spec: spec, fs: w.disks[member], member: member, random: randomOf(w.script.Seed, number),
		died: make(chan struct{}), over: make(chan struct{}), done: make(chan struct{}), ctx: ctx, cancel: cancel,
		desk: make(pipeline.Desk), counts: map[string]int{},
	}
	return l
}

// step counts an observable step of the kind, and ends the life where the script says so.
func (l *life) step(kind string) error {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.stepLocked(kind)
}

func (l *life) stepLocked(kind string) error {
	if l.dead {
		return errDead
	}
	l.counts[kind]++
	if kind == "disk" && l.spec.Keep > 0 && l.counts[kind] >= l.spec.Keep {
		l.world.keep(l)
	}
	if l.spec.End == kind && l.counts[kind] >= l.spec.At && l.mayEnd() {
		return l.endLocked(fmt.Sprintf("crash at %s step %d", kind, l.spec.At))
	}
	return nil
}

// end ends the life where the script says so, as a step does.
func (l *life) end(text string) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		_ = l.endLocked(text) // the life's own
	}
}

func (l *life) die(text string) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		l.dieLocked(text)
	}
}

// dieLocked is a power failure: from here on nothing that this life does is seen by anybody.
func (l *life) dieLocked(text string) {
	l.noteLocked("crash", text)
	l.dead, l.crashed = true, true
	if !l.ousted {
		close(l.over)
	}
	l.world.disks[l.member] = l.crashDisk([]int{0, 30, 70, 100}[l.random.IntN(4)])
	l.world.disks[l.member].TestingSetDiskUsage(room())
	l.fs.TestingSetDiskUsage(noRoom()) // the store needs no last flush
	close(l.died)
	l.cancel()
}

// crashDisk is what a power failure leaves: the part of what is not synced, block by block. Pebble takes for granted
// that a directory's changes survive in their order, as a journal keeps them, so of those none or all survive.
func (l *life) crashDisk(unsynced int) *vfs.MemFS {
	if unsynced > 0 {
		for _, name := range []string{"/", "state"} {
			if dir, err := l.fs.OpenDir(name); err == nil {
				if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
					l.world.violateLocked("script", "sync the simulated directory: %v", err)
				}
			}
		}
	}
	return l.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: l.random})
}

func (l *life) isDead() bool {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.dead
}

func (l *life) isOver() bool {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	return l.dead || l.ousted
}

// pause lets time pass, unless the life is over.
func (l *life) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.over:
	case <-l.done:
	}
}

// stop asks the life to end.
func (l *life) stop() {
	l.note("do", "stop")
	l.cancel()
}

// await waits for the life's end. One that does not end breaks the promise of a deadline.
func (l *life) await() {
	timer := time.NewTimer(10 * time.Minute)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
		l.world.violate("I7", "life %d does not end", l.number)
		// The bubble now ends the test binary, with all goroutines' stacks.
		fmt.Fprintln(os.Stderr, l.world.report())
	}
}

// late says whether the life has ended by itself, since last words of an earlier one came after its Open.
func (l *life) late() bool { return !l.crashed && listener.IsLate(l.err) }

// off is the power failure that may follow an orderly stop, too.
func (l *life) off() {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if !l.dead {
		l.dead = true
		l.world.disks[l.member] = l.fs.CrashClone(vfs.CrashCloneCfg{})
		l.world.disks[l.member].TestingSetDiskUsage(room())
	}
}

// fill leaves the disk without room for a while.
func (l *life) fill(d time.Duration) {
	l.note("do", "the disk is full for "+d.String())
	l.wasFull = true
	l.disk().TestingSetDiskUsage(noRoom())
	l.pause(d)
	if !l.isDead() {
		l.disk().TestingSetDiskUsage(room())
	}
}

// request asks for a snapshot of everything.
func (l *life) request() {
	l.note("do", "request")
	go func() { _ = l.desk.Request(l.ctx, pipeline.Request{Parts: []pipeline.Part{{}}}) }() // which the life may refuse
}

func (l *life) note(kind, text string) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	l.noteLocked(kind, text)
}

func (l *life) noteLocked(kind, text string) {
	l.world.steps = append(l.world.steps, step{time.Since(l.world.began), l.number, kind, text})
}

// run is the exporter.
func (l *life) run() {
	defer close(l.done)
	err := l.exporter()
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	l.err = err
	l.noteLocked("end", fmt.Sprint("run returns ", err))
}
