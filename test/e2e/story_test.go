package e2e

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI1AnOutageIsAStoryOfAFewLines: a broker of Kafka is away, and then a NATS server, while objects change. Of each
// the log has a line when that begins, and one of its end. Longer stories are those of internal/observe/telemetry.
func TestI1AnOutageIsAStoryOfAFewLines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka broker")
	}
	kafka.RequireReal(t)
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	lake := kafkaSink{name: "lake", prefix: "story.", delivery: "idempotent", more: ", partitions: 1, replication: 1"}
	r := newKafkaRig(t, c, lake)
	r.addStream(r.sinkConfig(c, []kafkaSink{lake}))
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.idle()
	r.begun()
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.outage("lake", func() { step(c.Kill(c.NodeIDs()[0])) }, func() { step(c.StartNodes(t.Context())) })
	r.outage("nats", r.broker.kill, r.broker.start)
	r.stopIdle()
	r.judge(false)
}

// begun returns when the log has the lines of the start.
func (r *rig) begun() {
	r.t.Helper()
	eventually(r.t, deliveryLimit, "the log says that the streams are watched, and what the first comparison found", func() bool {
		log := r.exporter.log(r.t)
		return strings.Contains(log, "msg=watching ") && strings.Contains(log, "msg=\"snapshot complete\" ")
	})
}

// outage takes the sink's broker away until the log says so, and wants the story when it has come back.
func (r *rig) outage(sink string, leave, comeBack func()) {
	r.t.Helper()
	told := len(r.exporter.log(r.t))
	leave()
	eventually(r.t, deliveryLimit, "the log says that the broker is away", func() bool {
		r.writer.disturb(r.t)
		return strings.Contains(r.exporter.log(r.t)[told:], " sink="+sink+" ")
	})
	last := r.writer.finish(r.t)
	comeBack()
	r.await(last...)
	r.idle()
	back := `msg="sink accepts records again" sink=` + sink
	eventually(r.t, deliveryLimit, "the log says that it is back", func() bool { return strings.Contains(r.exporter.log(r.t)[told:], back) })
	log := strings.TrimSpace(r.exporter.log(r.t)[told:])
	lines := strings.Split(log, "\n")
	if begin := lines[0]; len(lines) > 6 || !strings.Contains(begin, "level=WARN") || !strings.Contains(begin, " sink="+sink+" ") {
		r.t.Errorf("the log tells of the outage of %s in %d lines, want 6 at most, and its begin first:\n%s", sink, len(lines), log)
	}
}
