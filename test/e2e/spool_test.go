package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// configure gives the exporter its sinks by a file: the stream's queue is small, and does what the policy says when it is full.
func (r *rig) configure(policy string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "exporter.yaml")
	text := fmt.Sprintf("sinks:\n- {name: nats, nats: {url: 'nats://%s', stream: %s}, queue: {records: 40, full: %s}}\n- {name: file, file: {path: %s}}\n",
		r.broker.address(), streamName, policy, r.path())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.exporter.sinks = nil
	r.exporter.args = append(r.exporter.args, "-f", path)
}

// The broker is away while the exporter is killed again and again, which fills the spool, and comes back under more kills.
func TestI1I3SpoolIsCompleteInOrderAndOnceUnderKill9(t *testing.T) {
	r := newRig(t, nil)
	r.configure("spool")
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.writer.start(t)
	r.broker.kill()
	times := (kills(t, 10, 6) + 1) / 2
	for range times {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+200)
		r.exporter.process.kill()
		r.exporter.start(t)
	}
	r.broker.start()
	for range times {
		r.stream.awaitMore(t, r.exporter, len(r.stream.all(t))+60)
		r.exporter.process.kill()
		r.exporter.start(t)
	}
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}
