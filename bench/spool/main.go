// Command spool measures what an outage of one sink costs the other and the machine: how late a file sink has its
// records with and without a NATS server beside it that hangs, what spooling and draining cost, and what goes to disk,
// beside bare appends and syncs of the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var c course
	rig.Main(harness.Benchmark{
		Name: "spool", Limit: 10 * time.Minute, Flags: c.flags, Roles: map[string]harness.Role{appendRole: appendAlone},
	}, c.run)
}

// course is what the steps share.
type course struct {
	events, paced, rate, size int
	rig                       *rig.Rig
	server                    *harness.NATS
	figures                   []harness.Figure

	bytes    int64   // of the records of the flood, as the file has them
	spooling float64 // events per second of CPU time while it lasted
}

func (c *course) note(name string, value float64, unit string) {
	c.figures = append(c.figures, harness.Figure{Name: "spool." + name, Value: value, Unit: unit})
}

func (c *course) flags(flags *flag.FlagSet) {
	flags.IntVar(&c.events, "events", 20_000, "how many events go to disk and back, as fast as they come")
	flags.IntVar(&c.paced, "paced", 2_000, "how many events the latencies are taken of")
	flags.IntVar(&c.rate, "rate", 200, "how many of those come in a second")
	flags.IntVar(&c.size, "size", 8<<10, "about how many bytes an object has")
}

func (c *course) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	c.rig = r
	if c.server, err = harness.StartNATS(ctx, r.Dir); err != nil {
		return nil, err
	}
	defer c.server.Kill()
	for _, step := range []func(context.Context) error{c.healthy, c.outage, c.flood, c.bare} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return c.figures, nil
}

// healthy takes the file's latency while both sinks are well.
func (c *course) healthy(ctx context.Context) error { return c.latency(ctx, "healthy", false) }

// outage takes it while the other sink hangs.
func (c *course) outage(ctx context.Context) error { return c.latency(ctx, "outage", true) }

func (c *course) latency(ctx context.Context, name string, hangs bool) (err error) {
	l, err := c.start(ctx, replay.World{Run: name, Events: c.paced, Rate: c.rate, ObjectBytes: c.size})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	if hangs {
		if err := c.server.Pause(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.server.Resume()) }()
	}
	before, err := l.delivery(ctx)
	if err != nil {
		return err
	}
	if err := l.release(ctx); err != nil {
		return err
	}
	if err := l.await(ctx, "file"); err != nil {
		return err
	}
	after, err := l.delivery(ctx)
	if err != nil {
		return err
	}
	c.note("file_delivery_mean_ms_"+name, 1000*(after.seconds-before.seconds)/(after.records-before.records), "ms")
	c.note("file_delivery_within_16ms_"+name, (after.prompt-before.prompt)/(after.records-before.records), "ratio")
	return nil
}

// flood sends events as fast as the exporter takes them, first past a sink that hangs and then to it.
func (c *course) flood(ctx context.Context) (err error) {
	l, err := c.start(ctx, replay.World{Run: "flood", Events: c.events, ObjectBytes: c.size})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	if err := c.server.Pause(); err != nil {
		return err
	}
	resume := c.server.Resume
	defer func() { err = errors.Join(err, resume()) }()
	full, err := l.measure(ctx, "file", l.release)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(c.rig.Dir, "flood", output))
	if err != nil {
		return err
	}
	c.bytes, c.spooling = info.Size(), full.PerCPUSecond()
	c.note("spooling_events_per_cpu_second", c.spooling, "events/s")
	c.note("write_amplification", float64(l.written-info.Size())/float64(info.Size()), "ratio")
	drained, err := l.measure(ctx, "bus", func(context.Context) error { return c.server.Resume() })
	if err != nil {
		return err
	}
	c.note("draining_events_per_cpu_second", drained.PerCPUSecond(), "events/s")
	c.note("rss_mib", drained.PeakMiB(), "MiB")
	return nil
}

// bare appends the same bytes to a file, with a sync after each batch, and nothing else.
func (c *course) bare(ctx context.Context) error {
	var m harness.Measured
	spec := appendSpec{Path: filepath.Join(c.rig.Dir, "bare"), Bytes: c.bytes, Events: c.events}
	if err := harness.Call(ctx, appendRole, spec, &m); err != nil {
		return err
	}
	c.note("bare_append_events_per_cpu_second", m.PerCPUSecond(), "events/s")
	c.note("spooling_ratio_to_bare_append", c.spooling/m.PerCPUSecond(), "ratio")
	return nil
}
