package people

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestI4AnOutageWithARestartIsOneStory: JetStream goes away, and the exporter is killed and started meanwhile. /readyz
// says why it is not ready, and the log in the end how long the records have waited.
func TestI4AnOutageWithARestartIsOneStory(t *testing.T) {
	r := newRig(t, "restarted")
	server := natsserver.Start(t)
	r.configure("config.yaml", r.resource("configmaps", ""), fmt.Sprintf("  - {name: bus, nats: {url: %q, stream: BUS}, queue: {full: spool, records: 5}}", server.URL()))
	r.put("first", "1")
	r.start()
	eventually(t, "what is there is told", func() bool { return len(messagesOf(t, server.URL(), "BUS")) > 2 })
	server.Stop()
	for i := range 20 {
		r.put(fmt.Sprint("map-", i), strings.Repeat("x", 100_000))
	}
	eventually(t, "records wait on disk", func() bool {
		_, text := r.exporter.Get("/metrics")
		return regexp.MustCompile(`(?m)^kubecdc_spool_bytes{.*sink="bus"} [1-9]`).MatchString(text)
	})
	away := time.Now()
	r.exporter.Kill()
	r.launch()
	eventually(t, "/readyz says why", func() bool {
		_, text := r.exporter.Get("/readyz")
		return strings.Contains(text, "sink bus is not open: ")
	})
	back := time.Now()
	server.Restart(t)
	again := regexp.MustCompile(`msg="sink accepts records again" sink=bus for=(\S+)`)
	eventually(t, "the sink accepts records again", func() bool { return again.MatchString(r.exporter.Said()) })
	lasted, err := time.ParseDuration(again.FindStringSubmatch(r.exporter.Said())[1])
	if err != nil || lasted < back.Sub(away).Truncate(time.Second) {
		t.Errorf("the outage lasted %s, and the log says %s, %v", back.Sub(away), lasted, err)
	}
}
