// Command latency measures how soon a change is with a consumer: from the answer of a real API server to a write until
// a JetStream consumer has what the exporter's binary made of it, beside a bare client-go watch in the same run.
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

// stream is what the exporter writes to.
const stream = "BENCH"

func main() {
	var c course
	cluster.Main(harness.Benchmark{Name: "latency", Limit: 20 * time.Minute, Flags: c.flags}, c.run)
}

func (c *course) flags(flags *flag.FlagSet) {
	flags.DurationVar(&c.span, "span", 30*time.Second, "how long is written at the low rate; half as long at the high one")
}

func (c *course) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	server, err := harness.StartNATS(ctx, in.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	c.url = server.URL
	if c.exporter, err = startExporter(ctx, in.Dir, in.Kubeconfig(), server.URL); err != nil {
		return nil, err
	}
	defer c.exporter.Kill()
	if c.client, err = in.Client(); err != nil {
		return nil, err
	}
	return c.measure(ctx)
}

func startExporter(ctx context.Context, dir, kubeconfig, url string) (*harness.Exporter, error) {
	binary, err := harness.Build(ctx)
	if err != nil {
		return nil, err
	}
	return harness.StartExporter(binary, "--kubeconfig", kubeconfig, "--state-dir", filepath.Join(dir, "state"),
		"--resources", "configmaps", "--listen", "127.0.0.1:0", "--sink", url+"?stream="+stream)
}

// measure runs the course at each rate.
func (c *course) measure(ctx context.Context) (all []harness.Figure, err error) {
	follow, err := c.follow(ctx)
	if err != nil {
		return nil, err
	}
	defer follow.stop()
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	for i, rate := range []int{10, 500} {
		c.span /= time.Duration(i + 1) // many writes need less time
		acknowledged, err := c.write(ctx, rate)
		if err != nil {
			return all, err
		}
		if err := c.exporter.Await(ctx, 50*time.Millisecond, func() (bool, error) { return follow.have(acknowledged) }); err != nil {
			return all, err
		}
		all = append(all, figures(rate, c.span, acknowledged, follow)...)
	}
	return all, nil
}

func figures(rate int, span time.Duration, acknowledged map[string]time.Time, follow *followers) []harness.Figure {
	ours, bare := follow.ours.Latencies(acknowledged), follow.bare.Latencies(acknowledged)
	more := added(acknowledged, follow)
	at := fmt.Sprintf("_ms_at_%d", rate)
	return []harness.Figure{
		{Name: "latency.p50" + at, Value: harness.Percentile(ours, 50), Unit: "ms"},
		{Name: "latency.p99" + at, Value: harness.Percentile(ours, 99), Unit: "ms"},
		{Name: "latency.bare_p50" + at, Value: harness.Percentile(bare, 50), Unit: "ms"},
		{Name: "latency.bare_p99" + at, Value: harness.Percentile(bare, 99), Unit: "ms"},
		{Name: "latency.added_p50" + at, Value: harness.Percentile(more, 50), Unit: "ms"},
		{Name: "latency.added_p99" + at, Value: harness.Percentile(more, 99), Unit: "ms"},
		{Name: "latency.writes_per_second" + at[3:], Value: float64(len(acknowledged)) / span.Seconds(), Unit: "writes/s"},
	}
}
