// Command source measures how cheaply internal/source turns a watch into records. Beside it, on the same bytes, run
// what can not be beaten, a client that reads and discards them, and what is usual, an informer and json.Marshal.
//
// Server and clients are processes of their own. The figures are events per second of the client's CPU time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// options are the command line's.
type options struct {
	min     float64
	rounds  int
	span    time.Duration
	profile string
}

func main() {
	os.Exit(harness.Main(map[string]harness.Role{
		rig.ServeRole: rig.Serve,
		"copy":        client.Measure(client.Copy),
		"source":      client.Measure(runSource),
		"informer":    client.Measure(runInformer),
	}, run))
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("source", flag.ExitOnError)
	flags.Float64Var(&o.min, "min", 0.60, "fail below this ratio of source to reading and discarding over HTTP/2")
	flags.IntVar(&o.rounds, "rounds", 5, "how often every client runs; the figures are medians")
	flags.DurationVar(&o.span, "span", 2*time.Second, "how long a client reads in a round")
	flags.StringVar(&o.profile, "cpuprofile", "", "only profile the product's client, into this file")
	_ = flags.Parse(args) // it exits on an error
	server, address, err := rig.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	m := match{address: address, span: o.span}
	if o.profile != "" {
		return m.profile(ctx, o.profile)
	}
	return compare(ctx, &m, o)
}

// compare runs the rounds and prints the figures. It fails where source is too far from the limit.
func compare(ctx context.Context, m *match, o options) error {
	if err := m.warmUp(ctx); err != nil {
		return err
	}
	for range o.rounds {
		if err := m.round(ctx); err != nil {
			return err
		}
	}
	if err := harness.Print(os.Stdout, m.figures()); err != nil {
		return err
	}
	if ratio := m.ratio(product, reader); ratio < o.min {
		return fmt.Errorf("source.ratio_to_copy is %.3f, below %.2f", ratio, o.min)
	}
	return nil
}
