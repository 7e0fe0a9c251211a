// Command idle measures what the exporter costs when nothing happens: it watches 200 resources, of which no object
// changes, for a file and a JetStream, whose server is a process of its own. Its watches are sent a bookmark a minute.
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
	resources, objects int
	settle, span       time.Duration
}

func (m *measure) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.resources, "resources", 200, "how many resources are watched")
	flags.IntVar(&m.objects, "objects", 5, "how many objects each has")
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
	return m.watch(ctx, r, url)
}

// watch runs an exporter until it is quiet, and looks at it for a while.
func (m *measure) watch(ctx context.Context, r *rig.Rig, url string) ([]harness.Figure, error) {
	w := replay.World{Run: "idle", Kinds: m.resources, Objects: m.objects, ObjectBytes: 1536}
	line, err := r.NewLine(w.Run)
	if err != nil {
		return nil, err
	}
	line.Resources, line.Sinks = replay.Custom, []string{url}
	exporter, err := line.Start(w)
	if err != nil {
		return nil, err
	}
	defer exporter.Kill()
	if err := r.AwaitWatches(ctx, exporter, w, m.resources); err != nil {
		return nil, err
	}
	if err := pass(ctx, exporter, m.settle); err != nil {
		return nil, err
	}
	before, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	if err := pass(ctx, exporter, m.span); err != nil {
		return nil, err
	}
	after, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	if _, err := exporter.Stop(); err != nil {
		return nil, err
	}
	percent := 100 * (after.CPU - before.CPU).Seconds() / m.span.Seconds()
	return []harness.Figure{
		{Name: "idle.rss_mib", Value: float64(after.RSS) / (1 << 20), Unit: "MiB"},
		{Name: "idle.peak_rss_mib", Value: float64(after.PeakRSS) / (1 << 20), Unit: "MiB"},
		{Name: "idle.cpu_percent", Value: percent, Unit: "%"},
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
