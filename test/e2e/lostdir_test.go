package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4I5ALostDirectoryIsNoGap kills the exporter again and again and removes its state directory, which is restored
// from the log of the state in JetStream. What it had written since is recognised.
func TestI4I5ALostDirectoryIsNoGap(t *testing.T) {
	r := newRig(t)
	r.exporter.configure(t, fmt.Sprintf("- {name: bus, nats: {url: %q, stream: %s}}\n- {name: file, file: {path: %q}}\nstate: {log: {sink: bus}}\n",
		"nats://"+r.broker.address(), streamName, r.path()))
	r.summon()
	r.loseDirectories(kills(t, 3))
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
	if err := os.RemoveAll(filepath.Join(r.dir, "state")); err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(r.exporter.args)
	changed[0], changed[slices.Index(changed, "--resources")+1] = "check", "configmaps"
	if said := r.command(changed...); !strings.Contains(said, "sink file is not given pods any more: its objects (") {
		t.Errorf("beside an empty directory check does not say from the log what the next start changes:\n%s", said)
	}
}

// kafkaStateLost is the same with the log in Kafka.
func kafkaStateLost(t *testing.T, c *kafka.Cluster) {
	bus := kafkaSink{name: "bus", prefix: "lostdir.", delivery: "idempotent", more: threeReplicas}
	r := newKafkaRig(t, c, bus)
	r.exporter.configure(t, r.sinkConfig(c, []kafkaSink{bus})+"state: {log: {sink: bus, name: lostdir-state}}\n")
	r.summon()
	r.loseDirectories(kills(t, 2))
	r.settle()
	r.stopIdle()
	r.awaitTransactions(c, bus)
	r.judge(false)
}

// loseDirectories kills the exporter at random instants, and removes its state directory each time. Before the first
// time the log has the state.
func (r *rig) loseDirectories(times int) {
	t := r.t
	t.Helper()
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	r.writer.start(t)
	eventually(t, patience, "the log has the state", func() bool {
		return r.exporter.metric(t, "kubecdc_state_log_lag_seconds") < 1 && r.exporter.statuses(t).State.Log != nil
	})
	random := rand.New(rand.NewPCG(seed(t), 5000))
	for i := range times {
		r.file.awaitMore(t, r.exporter, len(r.file.all(t))+1)
		select {
		case <-time.After(time.Duration(random.Int64N(int64(500 * time.Millisecond)))): // any instant
		case <-r.exporter.process.Exited:
			t.Fatalf("the exporter ended by itself:\n%s", r.exporter.lastLines(t))
		}
		r.exporter.process.Kill()
		if err := os.RemoveAll(filepath.Join(r.dir, "state")); err != nil {
			t.Fatal(err)
		}
		if r.exporter.start(t); i == 0 {
			r.exporter.awaitLine(t, "state restored from its log")
		}
	}
	t.Logf("%d directories were lost", times)
}
