package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestAQuietStreamIsResolvedAsOftenAsASinkAsks, and not once a minute, which is how often an API server sends a
// bookmark to a watch that lasts.
func TestAQuietStreamIsResolvedAsOftenAsASinkAsks(t *testing.T) {
	r := newRig(t)
	r.configured(fmt.Sprintf(`
resources: [limitranges]
sinks: [{name: bus, nats: {url: "nats://%s", stream: %s}, resolved: {every: 3s}}]
`, r.broker.address(), streamName))
	r.exporter.start(t)
	var last time.Time
	inTime := 0
	r.stream.await(t, r.exporter, "five records in a row, each 20 seconds after the one before at most", func(e *event) bool {
		if e.op() != "resolved" {
			return false
		}
		if inTime++; e.Time.Sub(last) > 20*time.Second {
			inTime = 1
		}
		last = e.Time
		return inTime == 5
	})
	r.exporter.stop(t)
}
