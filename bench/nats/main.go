// Command nats measures the whole line into a real nats-server with its stream on disk: the exporter's binary brings
// the changes of 8 KiB Pods from a watch into JetStream, its state saved.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() { rig.Main(harness.Benchmark{Name: "nats", Limit: 15 * time.Minute}, run) }

const rounds, events, size = 5, 60_000, 8 << 10

func run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	server, err := harness.StartNATS(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	results := harness.Results{}
	for round := range rounds {
		w := replay.World{Run: fmt.Sprint("nats", round), Events: events, ObjectBytes: size}
		const config = "cluster: %s\nresources: [pods]\n" +
			"sinks: [{name: nats, nats: {url: %q, stream: %[1]s, subject: '%[1]s.{name}'}}]\n"
		measured, err := r.Flow(ctx, w, fmt.Sprintf(config, w.Run, server.URL))
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", w.Run, err)
		}
		results.Note("exporter", measured)
	}
	return results.Figures("nats.", "exporter"), nil
}
