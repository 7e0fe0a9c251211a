// Command sizing measures what one exporter costs under a load that is named on the command line: so many ConfigMaps of
// 1.5 KiB in a development API server, of which so many a second change, for some sinks. It prints memory, CPU time and
// the size of the state.
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

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// load is the command line's.
type load struct {
	objects, rate int
	sinks         string
	before        bool
	span          time.Duration
}

func main() { os.Exit(harness.Main(nil, run)) }

func run(ctx context.Context, args []string) (err error) {
	var l load
	flags := flag.NewFlagSet("sizing", flag.ExitOnError)
	flags.IntVar(&l.objects, "objects", 10_000, "how many objects there are")
	flags.IntVar(&l.rate, "rate", 100, "how many changes a second")
	flags.StringVar(&l.sinks, "sinks", "file", "kinds of sinks, of file, nats and kafka, joined by commas")
	flags.BoolVar(&l.before, "before", false, "keep each object as it was delivered last (before: true)")
	flags.DurationVar(&l.span, "span", time.Minute, "how long changes are made")
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "kubecdc-bench-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := testcluster.Start(ctx, testcluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	s := &site{dir: dir, kubeconfig: cluster.Kubeconfig()}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, strings.Split(l.sinks, ",")); err != nil {
		return err
	}
	config := cluster.RESTConfig()
	config.ContentType, config.QPS = "application/vnd.kubernetes.protobuf", -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	figures, err := measure(ctx, s, &writer{client: client, objects: l.objects}, l)
	return errors.Join(err, harness.Print(os.Stdout, figures))
}

// measure has the exporter list what there is, and then follow the changes.
func measure(ctx context.Context, s *site, w *writer, l load) ([]harness.Figure, error) {
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
