// Command sizing measures what one exporter costs under a load that is named on the command line: so many ConfigMaps of
// 1.5 KiB in a development API server, of which so many a second change, for some sinks. It prints memory, CPU time and
// the size of the state.
package main

import (
	"context"
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/cluster"
	"github.com/kubecdc/kubecdc/bench/harness"
)

// load is the command line's.
type load struct {
	objects, rate int
	sinks         string
	before        bool
	span          time.Duration
}

func main() {
	var l load
	cluster.Main(harness.Benchmark{Name: "sizing", Limit: 20 * time.Minute, Flags: l.flags}, l.run)
}

func (l *load) flags(flags *flag.FlagSet) {
	flags.IntVar(&l.objects, "objects", 10_000, "how many objects there are")
	flags.IntVar(&l.rate, "rate", 100, "how many changes a second")
	flags.StringVar(&l.sinks, "sinks", "file", "kinds of sinks, of file, nats and kafka, joined by commas")
	flags.BoolVar(&l.before, "before", false, "keep each object as it was delivered last (before: true)")
	flags.DurationVar(&l.span, "span", time.Minute, "how long changes are made")
}

func (l *load) run(ctx context.Context, in *cluster.Cluster) (figures []harness.Figure, err error) {
	s := &site{dir: in.Dir, kubeconfig: in.Kubeconfig()}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, strings.Split(l.sinks, ",")); err != nil {
		return nil, err
	}
	client, err := in.Client()
	if err != nil {
		return nil, err
	}
	return l.measure(ctx, s, &writer{client: client, objects: l.objects})
}

// measure has the exporter list what there is, and then follow the changes.
func (l *load) measure(ctx context.Context, s *site, w *writer) ([]harness.Figure, error) {
	if err := w.create(ctx); err != nil {
		return nil, err
	}
	exporter, err := s.start(ctx, l.before)
	if err != nil {
		return nil, err
	}
	defer exporter.Kill()
	delivered := func(records int) error {
		return exporter.Await(ctx, 20*time.Millisecond, func() (bool, error) { return s.delivered(ctx, records), nil })
	}
	if err := delivered(l.objects); err != nil {
		return nil, err
	}
	took := time.Since(exporter.Began)
	before, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	changes, err := w.change(ctx, l.rate, l.span)
	if err != nil {
		return nil, err
	}
	if err := delivered(l.objects + changes); err != nil {
		return nil, err
	}
	span := time.Since(began)
	after, err := exporter.Usage()
	if err != nil {
		return nil, err
	}
	if _, err := exporter.Stop(); err != nil {
		return nil, err
	}
	state, err := s.stateBytes()
	const mib = 1 << 20
	return []harness.Figure{
		{Name: "sizing.changes_per_second", Value: float64(changes) / span.Seconds(), Unit: "changes/s"},
		{Name: "sizing.snapshot_seconds", Value: took.Seconds(), Unit: "s"},
		{Name: "sizing.rss_mib", Value: float64(after.RSS) / mib, Unit: "MiB"},
		{Name: "sizing.peak_rss_mib", Value: float64(after.PeakRSS) / mib, Unit: "MiB"},
		{Name: "sizing.cpu_percent", Value: 100 * (after.CPU - before.CPU).Seconds() / span.Seconds(), Unit: "%"},
		{Name: "sizing.state_mib", Value: float64(state) / mib, Unit: "MiB"},
	}, err
}
