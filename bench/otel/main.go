// Command otel measures the exporter beside an OpenTelemetry Collector: both follow the Pods of one development API
// server into one Apache Kafka, at the same time. It prints what a change costs in CPU time and bytes; which changes
// were missed or told twice over kills and while the broker is paused; and the memory that many quiet Pods take.
//
// The Collector is the module in collector/, so that what it needs is no dependency of the exporter.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// course is what the command line asks for, and what it needs.
type course struct {
	changes, quiet, kills int
	parts                 string

	in      *cluster.Cluster
	client  *kubernetes.Clientset
	broker  *kafka.Cluster
	binary  string // of the exporter
	other   string // the Collector's
	figures []harness.Figure
}

func main() {
	var c course
	cluster.Main(harness.Benchmark{Name: "otel", Limit: time.Hour, Flags: c.flags}, c.run)
}

func (c *course) flags(flags *flag.FlagSet) {
	flags.IntVar(&c.changes, "changes", 20_000, "how many status updates the cost is measured with")
	flags.IntVar(&c.quiet, "quiet", 30_000, "how many Pods there are where nothing changes")
	flags.IntVar(&c.kills, "kills", 10, "how often both are killed")
	flags.StringVar(&c.parts, "parts", "cost,kills,pause,quiet", "what is measured, joined by commas")
}

func (c *course) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	c.in = in
	if err := kafka.Available(ctx); err != nil {
		return nil, err
	}
	if c.binary, err = harness.Build(ctx); err != nil {
		return nil, err
	}
	if c.other, err = harness.BuildIn(ctx, "bench/otel/collector", "collector"); err != nil {
		return nil, err
	}
	if c.client, err = in.Client(); err != nil {
		return nil, err
	}
	if c.broker, err = kafka.New(ctx, kafka.Options{}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.broker.Close()) }()
	if err := harness.Each(ctx, 0, busy, hands, func(i int) error { return c.add(ctx, i) }); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(c.parts, ",") {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), part)
		if err := c.measure(ctx, part); err != nil {
			return c.figures, fmt.Errorf("%s: %w", part, err)
		}
	}
	return c.figures, nil
}

// measure has both programs begin, with topics and states of their own, for one part.
func (c *course) measure(ctx context.Context, part string) error {
	parts := map[string]func(context.Context, *pair) error{
		"cost": c.cost, "kills": c.outages, "pause": c.pause, "quiet": c.memory,
	}
	run, known := parts[part]
	if !known {
		return errors.New("there is no such part; allowed: cost, kills, pause, quiet")
	}
	pods := busy
	if part == "quiet" {
		pods = c.quiet
		if err := harness.Each(ctx, busy, pods, hands, func(i int) error { return c.add(ctx, i) }); err != nil {
			return err
		}
	}
	both, err := c.open(ctx, part)
	if err != nil {
		return err
	}
	defer both.close()
	if err := both.await(ctx, pods); err != nil {
		return err
	}
	return run(ctx, both)
}

// note adds a figure of one of the two, and shows it.
func (c *course) note(p *program, name string, value float64, unit string) {
	fmt.Fprintf(os.Stderr, "%s %s %.1f %s\n", p.name, name, value, unit)
	c.figures = append(c.figures, harness.Figure{Name: "otel." + p.name + "_" + name, Value: value, Unit: unit})
}

// cost is what status updates take, as fast as the API server takes them.
func (c *course) cost(ctx context.Context, both *pair) error {
	before, err := both.spent(ctx)
	if err != nil {
		return err
	}
	err = harness.Each(ctx, 0, c.changes, hands, func(i int) error {
		_, err := c.touch(ctx, i%busy, i)
		return err
	})
	if err != nil {
		return err
	}
	if err := both.await(ctx, busy+c.changes); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // what is saved behind the last record is part of the cost
	after, err := both.spent(ctx)
	if err != nil {
		return err
	}
	for i, p := range both.programs {
		cpu, changes := after[i].CPU-before[i].CPU, float64(c.changes)
		c.note(p, "cpu_us_per_change", float64(cpu.Microseconds())/changes, "us")
		c.note(p, "bytes_per_change", float64(after[i].bytes-before[i].bytes)/changes, "B")
	}
	return nil
}

// memory is what both hold a minute after they have listed all Pods.
func (c *course) memory(ctx context.Context, both *pair) error {
	time.Sleep(time.Minute)
	spent, err := both.spent(ctx)
	if err != nil {
		return err
	}
	for i, p := range both.programs {
		c.note(p, "quiet_rss_mib", float64(spent[i].RSS)/(1<<20), "MiB")
		c.note(p, "peak_rss_mib", float64(spent[i].PeakRSS)/(1<<20), "MiB")
	}
	return nil
}
