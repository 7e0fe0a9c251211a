// Command idle measures what the exporter costs when nothing happens: it watches 200 resources, of which no object
// changes, for a file and a JetStream, whose server is a process of its own. Its watches are sent a bookmark a minute.
// With -clusters it watches as many resources in each of several clusters, and figures say what a further one costs.
// With -tasks the resources are spread over as many tasks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

func main() {
	var m measure
	rig.Main(harness.Benchmark{Name: "idle", Limit: 3 * time.Minute, Flags: m.flags, Roles: map[string]harness.Role{"nats": serveNATS}}, m.run)
}

// measure is what the command line asks for.
type measure struct {
	resources, objects, clusters, tasks int
	settle, span                        time.Duration
}

func (m *measure) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.resources, "resources", 200, "how many resources are watched")
	flags.IntVar(&m.objects, "objects", 5, "how many objects each has")
	flags.IntVar(&m.clusters, "clusters", 1, "how many clusters there are")
	flags.IntVar(&m.tasks, "tasks", 1, "how many tasks there are")
	flags.DurationVar(&m.settle, "settle", 5*time.Second, "how long the exporter has been quiet when it is measured")
	flags.DurationVar(&m.span, "span", 30*time.Second, "how long it is measured")
}

func (m *measure) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	server, err := harness.Start(ctx, "nats", r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	var url string
	if err := server.Reply(&url); err != nil {
		return nil, err
	}
	what, more := "cluster", m.clusters-1
	one, all := layout{clusters: 1}, layout{clusters: m.clusters}
	if m.tasks > 1 {
		what, more = "task", m.tasks-1
		one, all = layout{clusters: 1, tasks: 1}, layout{clusters: 1, tasks: m.tasks}
	}
	before, figures, err := m.watch(ctx, r, url, one)
	if err != nil || more == 0 {
		return figures, err
	}
	after, _, err := m.watch(ctx, r, url, all)
	if err != nil {
		return nil, err
	}
	return append(figures,
		harness.Figure{Name: "idle.further_" + what + "_mib", Value: (after.rss - before.rss) / float64(more), Unit: "MiB"},
		harness.Figure{Name: "idle.further_" + what + "_cpu_percent", Value: (after.percent - before.percent) / float64(more), Unit: "%"},
	), nil
}

// layout is what an exporter has to do.
type layout struct {
	clusters int
	tasks    int // 0 is without tasks
}

// cost is what an exporter has used.
type cost struct{ rss, percent float64 }

// watch runs an exporter until it is quiet, and looks at it for a while.
func (m *measure) watch(ctx context.Context, r *rig.Rig, url string, of layout) (c cost, figures []harness.Figure, err error) {
	run := fmt.Sprintf("idle%d-%d", of.clusters, of.tasks)
	line, err := r.NewLine(run)
	if err != nil {
		return c, nil, err
	}
	var worlds []replay.World
	for cluster := range of.clusters {
		worlds = append(worlds, replay.World{Run: run, Cluster: cluster, Kinds: m.resources, Objects: m.objects, ObjectBytes: 1536})
	}
	line.Resources, line.Sinks = replay.Custom, []string{url}
	if of.tasks > 0 {
		line.Sinks, line.Config = nil, fmt.Sprintf("tasks: %d\nsinks:\n- {name: bus, nats: {url: %q, stream: '%s_{task}', subject: '%s.{task}.{resource}.{name}'}}\n"+
			"state: {log: {sink: bus, name: %s}}\nha: {lease: default/%s}\n", of.tasks, url, run, run, run, run)
	}
	exporter, err := line.StartAll(worlds)
	if err != nil {
		return c, nil, err
	}
	defer exporter.Kill()
	for _, w := range worlds {
		if err := r.AwaitWatches(ctx, exporter, w, m.resources); err != nil {
			return c, nil, err
		}
	}
	if err := pass(ctx, exporter, m.settle); err != nil {
		return c, nil, err
	}
	before, err := exporter.Usage()
	if err != nil {
		return c, nil, err
	}
	if err := pass(ctx, exporter, m.span); err != nil {
		return c, nil, err
	}
	after, err := exporter.Usage()
	if err != nil {
		return c, nil, err
	}
	if _, err := exporter.Stop(); err != nil {
		return c, nil, err
	}
	c = cost{float64(after.RSS) / (1 << 20), 100 * (after.CPU - before.CPU).Seconds() / m.span.Seconds()}
	return c, []harness.Figure{
		{Name: "idle.rss_mib", Value: c.rss, Unit: "MiB"},
		{Name: "idle.peak_rss_mib", Value: float64(after.PeakRSS) / (1 << 20), Unit: "MiB"},
		{Name: "idle.cpu_percent", Value: c.percent, Unit: "%"},
	}, nil
}

// pass lets the time pass.
func pass(ctx context.Context, e *harness.Exporter, span time.Duration) error {
	until := time.Now().Add(span)
	return e.Await(ctx, 100*time.Millisecond, func() (bool, error) { return time.Now().After(until), nil })
}

// serveNATS is a NATS server that keeps its streams in the directory; it replies with its URL.
func serveNATS(ctx context.Context, text json.RawMessage, reply func(any) error) error {
	var dir string
	if err := json.Unmarshal(text, &dir); err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	server, err := natsserver.Run(dir + "/nats")
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := reply(server.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
