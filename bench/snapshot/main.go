// Command snapshot measures the first snapshot of many objects: the exporter's binary lists them from a replay server
// into a file, beside a client that reads and discards the same pages.
//
// The figures are objects per second of CPU time, of the exporter from its start to its end, and its peak RSS, which
// must not grow with the number of objects.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// options are the command line's.
type options struct {
	min     float64
	rounds  int
	objects int
	files   rig.Profiles
}

func main() {
	os.Exit(harness.Main(map[string]harness.Role{rig.ServeRole: rig.Serve, "copy": copyRole, rig.InsideRole: rig.RunInside}, run))
}

func run(ctx context.Context, args []string) (err error) {
	var o options
	flags := flag.NewFlagSet("snapshot", flag.ExitOnError)
	flags.Float64Var(&o.min, "min", 0, "fail below this ratio of the exporter to reading and discarding")
	flags.IntVar(&o.rounds, "rounds", 1, "how often the largest snapshot is taken; the figures are medians")
	flags.StringVar(&o.files.CPU, "cpuprofile", "", "only run the line inside a process and profile its CPU time into this file")
	flags.StringVar(&o.files.Allocs, "memprofile", "", "with -cpuprofile: profile what is allocated into this file")
	flags.IntVar(&o.objects, "objects", 1_000_000, "the largest number of objects")
	_ = flags.Parse(args) // it exits on an error
	if o.files.CPU != "" {
		w := replay.World{Run: "inside", Objects: o.objects, ObjectBytes: objectBytes}
		return rig.Profile(ctx, w, o.objects+2, o.files)
	}
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m := &match{rig: r, rss: map[int][]float64{}}
	for range o.rounds {
		for _, objects := range []int{o.objects / 100, o.objects / 10, o.objects} {
			if err := m.round(ctx, objects, objects == o.objects); err != nil {
				return err
			}
		}
	}
	return m.print(o)
}

func (m *match) print(o options) error {
	if err := harness.Print(os.Stdout, m.figures(o.objects)); err != nil {
		return err
	}
	if ratio := harness.Median(m.ratios); ratio < o.min {
		return fmt.Errorf("snapshot.ratio_to_copy is %.3f, below %.2f", ratio, o.min)
	}
	return nil
}
