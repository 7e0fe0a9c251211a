package e2e

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestI3I5ExactlyOnceInOrderUnderKill9(t *testing.T) {
	r := newRig(t)
	r.resolves()
	r.summon()
	r.writer.populate(t)
	r.writer.start(t)
	r.killAtRandom(kills(t, 12))
	r.settle()
	r.exporter.stop(t)
	for _, j := range r.judge(false) {
		if j.resolved == 0 {
			t.Errorf("sink %s never said that it is complete", j.sink)
		}
	}
}

// killAtRandom kills the exporter at random instants and starts it again at once. Every second life is counted from
// its first event, so that it ends in the middle of work, however slow the machine is; the others from their start.
// The first lives are short, so that some end while the sinks are opened, and within the first snapshot.
func (r *rig) killAtRandom(times int) {
	r.t.Helper()
	random := rand.New(rand.NewPCG(seed(r.t), 1000))
	fruitless := 0
	for i := range times {
		before := len(r.file.events)
		r.exporter.start(r.t)
		if i%2 == 1 && i > times/4 {
			r.file.awaitMore(r.t, r.exporter, before+1)
		}
		longest := 800 * time.Millisecond
		if i < times/4 {
			longest = 200 * time.Millisecond
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(longest)))):
		case <-r.exporter.process.Exited:
			r.t.Fatalf("the exporter ended by itself:\n%s", r.exporter.lastLines(r.t))
		}
		r.exporter.process.Kill()
		if len(r.file.read(r.t)) == 0 && len(r.file.events) == before {
			fruitless++
		}
	}
	r.writer.check(r.t)
	r.t.Logf("%d kills, %d of them before the first event", times, fruitless)
	r.exporter.start(r.t)
}

// awaitWhatTheFileHas returns when the stream has what was read last of an object from the file. Each sink has
// snapshots of its own.
func (r *rig) awaitWhatTheFileHas() {
	r.t.Helper()
	for _, last := range slices.Backward(r.file.events) {
		if last.UID != "" {
			r.stream.await(r.t, r.exporter, last.String(), func(e *event) bool { return e.UID == last.UID && e.version() >= last.version() })
			return
		}
	}
}
