package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestI6ASinkThatWasNeverReachedHoldsUpNoOther: at the very first start, with nothing saved, one broker's port is
// closed. The file gets the snapshot, and what changes after it; the log and /readyz say which sink is missing.
func TestI6ASinkThatWasNeverReachedHoldsUpNoOther(t *testing.T) {
	for _, kind := range []string{"kafka", "nats"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newWorld(t, world{})
			r.exporter = r.newExporter("state")
			entry := fmt.Sprintf("- {name: away, nats: {url: \"nats://127.0.0.1:%d\"}}\n", freePort(t))
			if kind == "kafka" {
				entry = fmt.Sprintf("- {name: away, kafka: {brokers: [\"127.0.0.1:%d\"], topic: \"k8s.{resource}\"}}\n", freePort(t))
			}
			r.exporter.configure(t, entry+fmt.Sprintf("- {name: file, file: {path: %q}}\n", r.path()))
			r.writer.populate(t)
			r.exporter.start(t)
			r.streaming()
			eventually(t, patience, "the log says which sink is away", func() bool {
				for line := range strings.Lines(r.exporter.log(t)) {
					if strings.Contains(line, "level=WARN") && strings.Contains(line, "sink=away") {
						return true
					}
				}
				return false
			})
			if answer, err := http.Get("http://" + r.exporter.listen + "/readyz"); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("/readyz answers %v, %v", answer, err)
			}
			r.exporter.process.Kill()
		})
	}
}
