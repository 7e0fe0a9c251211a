// Command snapshot measures the first snapshot of many objects: the exporter's binary lists them from a replay server
// into files. The figures are objects per second of CPU time, of the exporter from its start to its end, and its peak
// RSS, which must not grow with the number of objects.
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
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// task is what the command line asks for.
type task struct{ objects, sinks int }

func main() {
	var t task
	rig.Main(harness.Benchmark{Name: "snapshot", Limit: 15 * time.Minute, Flags: t.flags}, t.run)
}

func (t *task) flags(flags *flag.FlagSet) {
	flags.IntVar(&t.objects, "objects", 1_000_000, "the largest number of objects")
	flags.IntVar(&t.sinks, "sinks", 1, "how many files each snapshot goes to")
}

func (t *task) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	results := harness.Results{}
	for i, name := range []string{"10k", "100k", "1m"} {
		measured, err := t.snapshot(ctx, r, name, t.objects/[]int{100, 10, 1}[i])
		if err != nil {
			return nil, fmt.Errorf("take a snapshot of %s objects: %w", name, err)
		}
		results.Note(name, measured)
		figure := harness.Figure{Name: "snapshot." + name + "_rss_mib", Value: measured.PeakMiB(), Unit: "MiB"}
		figures = append(figures, figure)
	}
	rate := results.Median("1m", harness.Measured.PerCPUSecond)
	return append(figures, harness.Figure{Name: "snapshot.events_per_cpu_second", Value: rate, Unit: "events/s"}), nil
}

// snapshot runs an exporter with an empty state until the snapshot is in every file.
func (t *task) snapshot(ctx context.Context, r *rig.Rig, name string, objects int) (m harness.Measured, err error) {
	config := "resources: [pods]\nsinks:\n"
	for i := range t.sinks {
		path := filepath.Join(r.Dir, name, fmt.Sprintf("%d.ndjson", i))
		config += fmt.Sprintf("- {name: file-%d, file: {path: %q}}\n", i, path)
	}
	line, err := r.NewLine(name, config)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(line.Dir)) }()
	exporter, err := line.Start(replay.World{Run: name, Objects: objects, ObjectBytes: 1536})
	if err != nil {
		return m, err
	}
	defer exporter.Kill()
	const frames = 2 // its begin and its end
	if err := exporter.AwaitRecords(ctx, objects+frames); err != nil {
		return m, err
	}
	usage, err := exporter.Stop()
	return harness.Measured{Events: objects, CPU: usage.CPU, Peak: usage.PeakRSS}, err
}
