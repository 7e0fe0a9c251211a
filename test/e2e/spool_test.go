package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// queue makes the stream's queue small, and has it do what the policy says when it is full.
func (r *rig) queue(policy string) {
	r.t.Helper()
	r.exporter.configure(r.t, fmt.Sprintf("- {name: nats, nats: {url: 'nats://%s', stream: %s}, queue: {records: 40, full: %s}}\n- {name: file, file: {path: %q}}\n",
		r.broker.address(), streamName, policy, r.path()))
}

// The broker is away while the exporter is killed again and again, which fills the spool, and comes back under more
// kills.
func TestI1I3SpoolIsCompleteInOrderAndOnceUnderKill9(t *testing.T) {
	r := newRig(t)
	r.queue("spool")
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.broker.kill()
	times := (kills(t, 6) + 1) / 2
	r.killInTheMiddle(times, r.file)
	r.broker.start()
	r.killInTheMiddle(times, r.stream)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	r.judge(false)
	t.Logf("%d kills while the spool was filled, and %d while it was drained", times, times)
}

// killInTheMiddle kills the exporter again and again when the sink has some of what there is to write. The writer waits
// for the lives of the exporter, so that they do not fall behind the API server's history, however many they are.
func (r *rig) killInTheMiddle(times int, sink *follower) {
	r.t.Helper()
	random := rand.New(rand.NewPCG(seed(r.t), 5000))
	for i := range times {
		before := len(sink.all(r.t))
		r.writer.change(r.t, 15)
		sink.awaitMore(r.t, r.exporter, before+1+random.IntN(100))
		r.exporter.process.Kill()
		r.exporter.start(r.t)
		if i%4 == 3 {
			r.file.awaitObjects(r.t, r.exporter, r.writer.finish(r.t)...)
		}
	}
}
