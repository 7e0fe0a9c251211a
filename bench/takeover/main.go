// Command takeover measures what it takes that another exporter leads, with many objects in the state and changes
// all the time. Two exporters share a task: a replay server has the objects and the Lease, and JetStream has the sink
// and the log of the state. It measures from the stop or the kill of the leader until the first change of its successor
// is in the stream; how far the log of the state is behind; what the log costs; and how long an exporter with an empty
// directory takes until its first change.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var b battery
	rig.Main(harness.Benchmark{Name: "takeover", Limit: time.Hour, Flags: b.flags}, b.run)
}

// sinks is the only one: its URL, its stream, and what its subjects begin with.
const sinks = "sinks: [{name: bus, nats: {url: %q, stream: %s, subject: \"%s.{resource}.{namespace}.{name}\"}}]\n"

// battery is how much is measured.
type battery struct {
	objects, bytes, rate   int
	planned, killed, pairs int
	events                 int
	lease, quiet           time.Duration
}

func (b *battery) flags(flags *flag.FlagSet) {
	flags.IntVar(&b.objects, "objects", 1_000_000, "how many objects there are")
	flags.IntVar(&b.bytes, "bytes", 1024, "about how large each is")
	flags.IntVar(&b.rate, "rate", 500, "how many changes a second")
	flags.IntVar(&b.planned, "planned", 10, "how often the leader is stopped")
	flags.IntVar(&b.killed, "killed", 5, "how often it is killed")
	flags.IntVar(&b.pairs, "pairs", 3, "how often the cost with the log and without it is measured, one behind the other")
	flags.IntVar(&b.events, "events", 200_000, "how many changes that is measured with")
	flags.DurationVar(&b.lease, "lease", 10*time.Second, "the duration of the Lease")
	flags.DurationVar(&b.quiet, "quiet", 30*time.Second, "for how long the lag of the log is measured")
}

func (b *battery) run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	server, err := harness.StartNATS(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	ratio, err := b.cost(ctx, r, server.URL)
	if err != nil {
		return nil, fmt.Errorf("measure what the log costs: %w", err)
	}
	p := &pair{battery: b, rig: r, url: server.URL, world: replay.World{
		Run: "takeover", Objects: b.objects, ObjectBytes: b.bytes, Rate: b.rate, Events: 100_000_000, Held: true,
	}}
	defer p.end()
	took, err := p.run(ctx)
	return append([]harness.Figure{{Name: "takeover.log_ratio", Value: ratio, Unit: "ratio"}}, took...), err
}

// cost is how many events a CPU-second delivers with the log, against without it.
func (b *battery) cost(ctx context.Context, r *rig.Rig, url string) (float64, error) {
	var ratios []float64
	for i := range b.pairs {
		var rates [2]float64
		for j, log := range []string{"", "state: {log: {sink: bus}}\n"} {
			name := fmt.Sprintf("cost-%d-%d", i, j)
			stream, err := harness.OpenStream(url, name)
			if err != nil {
				return 0, err
			}
			defer stream.Close()
			config := fmt.Sprintf("cluster: %s\n"+sinks+"%s", name, url, name, name, log)
			to := rig.Sink{Config: config, Count: stream.Count}
			measured, err := r.FlowTo(ctx, replay.World{Run: name, ObjectBytes: b.bytes, Events: b.events}, to)
			if err == nil {
				err = stream.Remove(ctx)
			}
			if err != nil {
				return 0, err
			}
			rates[j] = float64(measured.Events) / measured.CPU.Seconds()
			fmt.Fprintf(os.Stderr, "%s: %.0f events per CPU-second\n", name, rates[j])
		}
		ratios = append(ratios, rates[1]/rates[0])
	}
	return harness.Median(ratios), nil
}
