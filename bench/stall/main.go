// Command stall measures how late full snapshots make live changes: 100,000 objects on a real API server, 50 changes a
// second, and two JetStream sinks of one exporter, of which the second takes 5 MB a second. It measures from the answer
// to a write until a consumer has the change: during the initial snapshot, without one, and during one that only the
// second sink was asked for. Then the API server restarts, and it measures from when that is ready until a consumer has
// the first change. At last the exporter is killed again and again, at first with nothing to read and then while a new
// sink is given its snapshot.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
)

func main() {
	var c crowd
	cluster.Main(harness.Benchmark{Name: "stall", Limit: 30 * time.Minute, Flags: c.flags}, c.run)
}

func (c *crowd) flags(flags *flag.FlagSet) {
	flags.IntVar(&c.objects, "objects", 100_000, "how many objects there are")
	flags.IntVar(&c.bytes, "bytes", 4096, "how large each is")
	flags.IntVar(&c.rate, "rate", 50, "how many changes a second")
	flags.IntVar(&c.speed, "speed", 5_000_000, "how many bytes a second the second sink takes")
	flags.DurationVar(&c.quiet, "quiet", 30*time.Second, "how long is measured without a snapshot")
	flags.IntVar(&c.kills, "kills", 10, "how often the exporter is killed while a new sink is given its snapshot")
	flags.StringVar(&c.file, "latencies", "", "write each latency into this file, one a line")
}

func (c *crowd) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	if c.client, err = in.Client(); err != nil {
		return nil, err
	}
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	return measure(ctx, in, c)
}

// measure starts the rest, and measures one phase after the other.
func measure(ctx context.Context, in *cluster.Cluster, crowd *crowd) ([]harness.Figure, error) {
	server, err := harness.StartNATS(ctx, in.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	slow, err := harness.NewThrottle(server.URL, crowd.speed)
	if err != nil {
		return nil, err
	}
	defer slow.Close()
	other, err := harness.NewThrottle(server.URL, crowd.speed)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	t := &trial{crowd: crowd, in: in, state: filepath.Join(in.Dir, "state")}
	if t.binary, err = harness.Build(ctx); err != nil {
		return nil, err
	}
	t.sinks = "sinks:\n" + fmt.Sprintf(sink, "first", server.URL, streams[0]) + fmt.Sprintf(sink, "second", slow.URL(), streams[1])
	t.third = fmt.Sprintf(sink, "third", other.URL(), thirdStream)
	for i, name := range []string{streams[0], streams[1], thirdStream} {
		if t.logs[i], err = harness.OpenStream(server.URL, name); err != nil {
			return nil, err
		}
		defer t.logs[i].Close()
	}
	if err := t.start(t.sinks); err != nil {
		return nil, err
	}
	defer func() { t.exporter.Kill() }() // the last one
	if err := t.follow(ctx); err != nil {
		return nil, err
	}
	return t.run(ctx)
}
