// Command stall measures how late full snapshots make live changes: 100,000 objects on a real API server, 50 changes a
// second, and two JetStream sinks of one exporter, of which the second takes 5 MB a second. It measures from the answer
// to a write until a consumer has the change: during the initial snapshot, without one, and during one that only the
// second sink was asked for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/test/testcluster"
)

// options are the command line's.
type options struct {
	objects, bytes int
	rate           int // of changes a second
	speed          int // of the second sink, in bytes a second
	quiet          time.Duration
	file           string // of all latencies
}

func main() { os.Exit(harness.Main(nil, run)) }

func run(ctx context.Context, args []string) (err error) {
	var o options
	flags := flag.NewFlagSet("stall", flag.ExitOnError)
	flags.IntVar(&o.objects, "objects", 100_000, "how many objects there are")
	flags.IntVar(&o.bytes, "bytes", 4096, "how large each is")
	flags.IntVar(&o.rate, "rate", 50, "how many changes a second")
	flags.IntVar(&o.speed, "speed", 5_000_000, "how many bytes a second the second sink takes")
	flags.DurationVar(&o.quiet, "quiet", 30*time.Second, "how long is measured without a snapshot")
	flags.StringVar(&o.file, "latencies", "", "write each latency into this file, one a line")
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
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
	crowd, err := newCrowd(cluster.RESTConfig(), o)
	if err != nil {
		return err
	}
	if err := crowd.create(ctx); err != nil {
		return err
	}
	return measure(ctx, dir, cluster.Kubeconfig(), crowd)
}

// measure starts the rest, and measures one phase after the other.
func measure(ctx context.Context, dir, kubeconfig string, crowd *crowd) error {
	server, err := harness.StartNATS(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Kill()
	slow, err := newThrottle(server.URL, crowd.speed)
	if err != nil {
		return err
	}
	defer slow.close()
	t := &trial{crowd: crowd, state: filepath.Join(dir, "state")}
	if err := t.start(ctx, dir, kubeconfig, server.URL, slow.url()); err != nil {
		return err
	}
	defer t.exporter.Kill()
	if err := t.follow(ctx, server.URL); err != nil {
		return err
	}
	defer t.nc.Close()
	figures, err := t.run(ctx)
	if err != nil {
		return err
	}
	return harness.Print(os.Stdout, figures)
}
