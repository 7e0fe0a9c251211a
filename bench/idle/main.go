// Command idle measures what the exporter costs when nothing happens: it watches 200 resources, of which no object
// changes, for a file and a JetStream, whose server is a process of its own. Its watches are sent a bookmark a minute.
// With -clusters it watches as many resources in each of several clusters, and figures say what a further one costs.
// With -tasks the resources are spread over as many tasks.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var m measure
	rig.Main(harness.Benchmark{Name: "idle", Limit: 3 * time.Minute, Flags: m.flags}, m.run)
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
	server, err := harness.StartNATS(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	what, more := "cluster", m.clusters-1
	one, all := layout{clusters: 1}, layout{clusters: m.clusters}
	if m.tasks > 1 {
		what, more = "task", m.tasks-1
		one, all = layout{clusters: 1, tasks: 1}, layout{clusters: 1, tasks: m.tasks}
	}
	before, peak, err := m.watch(ctx, r, server.URL, one)
	if err != nil {
		return nil, err
	}
	figures = []harness.Figure{
		{Name: "idle.rss_mib", Value: before.rss, Unit: "MiB"},
		{Name: "idle.peak_rss_mib", Value: peak, Unit: "MiB"},
		{Name: "idle.cpu_percent", Value: before.percent, Unit: "%"},
	}
	if more == 0 {
		return figures, nil
	}
	after, _, err := m.watch(ctx, r, server.URL, all)
	rss, percent := (after.rss-before.rss)/float64(more), (after.percent-before.percent)/float64(more)
	return append(figures,
		harness.Figure{Name: "idle.further_" + what + "_mib", Value: rss, Unit: "MiB"},
		harness.Figure{Name: "idle.further_" + what + "_cpu_percent", Value: percent, Unit: "%"},
	), err
}

// layout is what an exporter has to do.
type layout struct {
	clusters int
	tasks    int // 0 is without tasks
}

func (m *measure) config(run, dir, url string, of layout) string {
	resources := fmt.Sprintf("resources: [%q]\n", replay.Custom)
	if of.tasks > 0 {
		const text = "tasks: %d\nsinks:\n" +
			"- {name: bus, nats: {url: %q, stream: '%s_{task}', subject: '%[3]s.{task}.{resource}.{name}'}}\n" +
			"state: {log: {sink: bus, name: %[3]s}}\nha: {lease: default/%[3]s}\n"
		return resources + fmt.Sprintf(text, of.tasks, url, run)
	}
	file := "changes.ndjson"
	if of.clusters > 1 {
		file = "{cluster}.ndjson"
	}
	return resources + fmt.Sprintf("sinks:\n- file: {path: %q}\n- nats: {url: %q}\n", filepath.Join(dir, file), url)
}

// cost is what an exporter uses.
type cost struct{ rss, percent float64 }

// watch runs an exporter until it is quiet, and looks at it for a while.
func (m *measure) watch(ctx context.Context, r *rig.Rig, url string, of layout) (c cost, peak float64, err error) {
	run := fmt.Sprintf("idle%d-%d", of.clusters, of.tasks)
	line, err := r.NewLine(run, m.config(run, filepath.Join(r.Dir, run), url, of))
	if err != nil {
		return c, 0, err
	}
	var worlds []replay.World
	for cluster := range of.clusters {
		w := replay.World{Run: run, Cluster: cluster, Kinds: m.resources, Objects: m.objects, ObjectBytes: 1536}
		worlds = append(worlds, w)
	}
	exporter, err := line.Start(worlds...)
	if err != nil {
		return c, 0, err
	}
	defer exporter.Kill()
	for _, w := range worlds {
		if err := r.AwaitWatches(ctx, exporter, w, m.resources); err != nil {
			return c, 0, err
		}
	}
	if err := exporter.Pass(ctx, m.settle); err != nil {
		return c, 0, err
	}
	before, err := exporter.Usage()
	if err != nil {
		return c, 0, err
	}
	if err := exporter.Pass(ctx, m.span); err != nil {
		return c, 0, err
	}
	after, err := exporter.Usage()
	if err != nil {
		return c, 0, err
	}
	if _, err := exporter.Stop(); err != nil {
		return c, 0, err
	}
	const mib = 1 << 20
	c = cost{float64(after.RSS) / mib, 100 * (after.CPU - before.CPU).Seconds() / m.span.Seconds()}
	return c, float64(after.PeakRSS) / mib, nil
}
