// Command sinks measures what several sinks of one exporter cost, and what they cost each other: how late the others
// have their records while one is stopped, hangs, is slow, has no schema, or is full (others), what each further sink
// costs beside its own encoding and writing (fanout), and what a trickle of changes costs (trickle). Kafka and
// JetStream are real; the watch is a replay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var c course
	rig.Main(harness.Benchmark{Name: "sinks", Limit: 30 * time.Minute, Flags: c.flags}, c.run)
}

// course is what the parts share.
type course struct {
	only           string
	rounds, events int
	span           time.Duration

	rig     *rig.Rig
	server  *harness.NATS
	brokers []string
	figures []harness.Figure
}

func (c *course) flags(flags *flag.FlagSet) {
	flags.StringVar(&c.only, "only", "", "measure this alone: others, fanout or trickle")
	flags.IntVar(&c.rounds, "rounds", 3, "how often each is measured; the figures are medians")
	flags.IntVar(&c.events, "events", 40_000, "how many events the fan-out is sent, as fast as they come")
	flags.DurationVar(&c.span, "span", 15*time.Second, "how long changes come at a rate")
}

func (c *course) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	testing.Init()
	c.rig = r
	if c.server, err = harness.StartNATS(ctx, r.Dir); err != nil {
		return nil, err
	}
	defer c.server.Kill()
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"fanout", c.fanout}, {"trickle", c.trickle}, {"others", c.others}} {
		if c.only != "" && c.only != part.name {
			continue
		}
		if err := part.run(ctx); err != nil {
			return c.figures, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return c.figures, nil
}

func (c *course) note(name string, value float64, unit string) {
	c.figures = append(c.figures, harness.Figure{Name: name, Value: value, Unit: unit})
}

// fanout is what an event costs with one, two and three sinks that are files, less what one more encoding and append
// of it cost alone.
func (c *course) fanout(ctx context.Context) error {
	further := map[int][]float64{}
	var alone []float64
	for round := range c.rounds {
		var costs []float64
		for sinks := 1; sinks <= 3; sinks++ {
			cost, err := c.fanoutOf(ctx, round, sinks)
			if err != nil {
				return err
			}
			costs = append(costs, cost)
		}
		own, err := c.own(ctx, round)
		if err != nil {
			return err
		}
		alone = append(alone, own)
		for n := 1; n < len(costs); n++ {
			further[n+1] = append(further[n+1], costs[n]-costs[n-1]-own)
		}
	}
	c.note("fanout.own_us_per_event", harness.Median(alone), "us")
	for n := 2; n <= 3; n++ {
		c.note(fmt.Sprintf("fanout.sink_%d_us_per_event", n), harness.Median(further[n]), "us")
	}
	return nil
}

// fanoutOf is the CPU time of an event with so many sinks, in microseconds.
func (c *course) fanoutOf(ctx context.Context, round, sinks int) (cost float64, err error) {
	w := replay.World{Run: fmt.Sprintf("fanout-%d-%d", round, sinks), Events: c.events}
	dir := filepath.Join(c.rig.Dir, w.Run)
	config := "sinks:\n"
	var files []*rig.Follower
	for n := range sinks {
		path := filepath.Join(dir, fmt.Sprintf("%d.ndjson", n))
		config += fmt.Sprintf("- {name: file-%d, file: {path: %q}}\n", n, path)
		follower, err := rig.Follow(path)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, follower.Close()) }()
		files = append(files, follower)
	}
	least := func(context.Context) (int, error) {
		least := -1
		for _, file := range files {
			n, err := file.Lines()
			if err != nil {
				return 0, err
			}
			if least < 0 || n < least {
				least = n
			}
		}
		return least, nil
	}
	m, err := c.rig.FlowTo(ctx, w, rig.Sink{Config: config, Count: least})
	return 1e6 / m.PerCPUSecond(), err
}

// trickle is what changes cost that come one by one, into a file and a stream.
func (c *course) trickle(ctx context.Context) (err error) {
	const rate = 120
	events := rate * int(c.span.Seconds())
	l, err := c.start(ctx, replay.World{Run: "trickle", Events: events, Rate: rate, ObjectBytes: 2 << 10}, sinks(
		c.file("trickle"), fmt.Sprintf("{name: bus, nats: {url: %q, stream: TRICKLE}}", c.server.URL)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	const commits = `kubecdc_commit_seconds_count{}`
	before, err := l.Metric(ctx, commits)
	if err != nil {
		return err
	}
	used, err := l.exporter.Usage()
	if err != nil {
		return err
	}
	began, err := l.release(ctx)
	if err != nil {
		return err
	}
	select { // who asks for metrics meanwhile is part of what it costs
	case <-time.After(c.span):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, name := range []string{"file", "bus"} {
		if err := l.await(ctx, name, events); err != nil {
			return err
		}
	}
	took := time.Since(began)
	after, err := l.exporter.Usage()
	if err != nil {
		return err
	}
	saved, err := l.Metric(ctx, commits)
	c.note("trickle.commits_per_second", (saved-before)/took.Seconds(), "commits/s")
	c.note("trickle.cpu_us_per_change", float64((after.CPU-used.CPU).Microseconds())/float64(events), "us")
	return err
}

// sinks is a configuration of these.
func sinks(all ...string) string { return "sinks:\n- " + strings.Join(all, "\n- ") + "\n" }

func (c *course) file(run string) string {
	return fmt.Sprintf("{name: file, file: {path: %q}}", filepath.Join(c.rig.Dir, run, "file.ndjson"))
}
