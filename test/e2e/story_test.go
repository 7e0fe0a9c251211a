package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// outageTime is how long the broker is away: E2E_OUTAGE, or until the log has said so.
func outageTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("E2E_OUTAGE")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("E2E_OUTAGE %q: %v", text, err)
	}
	return d
}

// What the log says of a sink that fails and of one that is well again.
const (
	accepts = `msg="sink accepts records again"`
	lasts   = `msg="sink still fails"`
)

// TestI1AnOutageIsAStoryOfAFewLines: a broker is away twice, while objects change. Of each time the log has one line
// when it begins, one a minute, and one of its end with what was lost, which is nothing.
func TestI1AnOutageIsAStoryOfAFewLines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka broker")
	}
	kafka.RequireReal(t)
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	r := newKafkaRig(t, c, kafkaSink{name: "lake", prefix: "story.", delivery: "idempotent", more: ", partitions: 1, replication: 1"})
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.idle()
	told := len(r.exporter.log(t))
	for range 2 {
		r.sendAway(c)
	}
	lines := strings.Split(strings.TrimSpace(r.exporter.log(t)[told:]), "\n")
	t.Logf("the log says:\n%s", strings.Join(lines, "\n"))
	r.expectStory(lines)
	r.stopIdle()
	r.judge(false)
}

// sendAway takes the broker away for its time, and at least until the log says so, and returns when its sink is well
// again and has everything.
func (r *rig) sendAway(c *kafka.Cluster) {
	r.t.Helper()
	began, told := time.Now(), len(r.exporter.log(r.t))
	if err := c.Kill(c.NodeIDs()[0]); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, outageTime(r.t)+deliveryLimit, "the log says that the broker is away, and its time is over", func() bool {
		r.writer.disturb(r.t)
		return time.Since(began) >= outageTime(r.t) && strings.Contains(r.exporter.log(r.t)[told:], "sink=lake")
	})
	last := r.writer.finish(r.t)
	ctx, cancel := context.WithTimeout(r.t.Context(), scenarioLimit)
	defer cancel()
	if err := c.StartNodes(ctx); err != nil {
		r.t.Fatal(err)
	}
	r.await(last...)
	r.idle()
	eventually(r.t, deliveryLimit, "the log says that it is back", func() bool {
		return strings.Contains(r.exporter.log(r.t)[told:], accepts)
	})
}

// expectStory wants both outages in at most twelve lines: begin, what lasts, and end with what was lost.
func (r *rig) expectStory(lines []string) {
	r.t.Helper()
	if len(lines) > 12 {
		r.t.Errorf("the log has %d lines of two outages, want 12 at most", len(lines))
	}
	begins, ends := 0, 0
	for _, line := range lines {
		switch {
		case !strings.Contains(line, "sink=lake") || strings.Contains(line, lasts):
		case strings.Contains(line, accepts):
			ends++
			r.expectParts(line, "for=", "attempts=", "lost=nothing")
		case strings.Contains(line, "level=WARN"):
			begins++
			r.expectParts(line, "error=", "waiting=", "waitingBytes=")
		}
		if begins-ends < 0 || begins-ends > 1 {
			r.t.Errorf("%d outages have begun and %d have ended at %q", begins, ends, line)
		}
	}
	if begins != 2 || ends != 2 {
		r.t.Errorf("%d outages have begun and %d have ended, want two of each", begins, ends)
	}
}

func (r *rig) expectParts(line string, parts ...string) {
	r.t.Helper()
	missing := slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(line, part) })
	if len(missing) > 0 {
		r.t.Errorf("%q lacks %q", line, missing)
	}
}
