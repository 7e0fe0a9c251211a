// Command restart measures how soon an exporter with a million objects in its inventory is back: the time from its exec
// to the line of a new change, which the server sends at once, in the sink's file.
package main

import (
	"bytes"
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

func main() {
	var t trial
	rig.Main(harness.Benchmark{Name: "restart", Limit: 10 * time.Minute, Flags: t.flags}, t.run)
}

// trial is what the command line asks for, and the exporter. Each life of it finds one event more in the world than the
// one before.
type trial struct {
	rounds, objects int
	line            *rig.Line
	output          string
}

func (t *trial) flags(flags *flag.FlagSet) {
	flags.IntVar(&t.rounds, "rounds", 5, "how often the exporter is restarted; the figures are medians")
	flags.IntVar(&t.objects, "objects", 1_000_000, "how many objects are in the inventory")
}

func (t *trial) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	t.output = filepath.Join(r.Dir, "changes.ndjson")
	config := fmt.Sprintf("resources: [pods]\nsinks: [{file: {path: %q}}]\n", t.output)
	if t.line, err = r.NewLine("restart", config); err != nil {
		return nil, err
	}
	var seconds, memory []float64
	for life := range t.rounds + 1 {
		took, usage, err := t.live(ctx, life)
		if err != nil {
			return nil, fmt.Errorf("life %d: %w", life, err)
		}
		fmt.Fprintf(os.Stderr, "life %2d: %6.3f s, %5.1f MiB\n", life, took.Seconds(), float64(usage.PeakRSS)/(1<<20))
		if life > 0 { // the first one filled the inventory
			seconds, memory = append(seconds, took.Seconds()), append(memory, float64(usage.PeakRSS)/(1<<20))
		}
	}
	return []harness.Figure{
		{Name: "restart.first_change_seconds", Value: harness.Median(seconds), Unit: "s"},
		{Name: "restart.rss_mib", Value: harness.Median(memory), Unit: "MiB"},
	}, nil
}

// live starts the exporter, waits for the snapshot or, later, for the line of the change, and stops it. It returns the
// time from the exec to that line.
func (t *trial) live(ctx context.Context, life int) (took time.Duration, usage harness.Usage, err error) {
	w := replay.World{
		Run: fmt.Sprint("restart", life), Objects: t.objects, ObjectBytes: 1536, Past: max(0, life-1), Events: life,
	}
	exporter, err := t.line.Start(w)
	if err != nil {
		return 0, usage, err
	}
	defer exporter.Kill()
	if life == 0 {
		const frames = 2 // its begin and its end
		err = exporter.AwaitRecords(ctx, t.objects+frames)
	} else {
		err = t.awaitChange(ctx, exporter)
	}
	took = time.Since(exporter.Began)
	if err != nil {
		return took, usage, err
	}
	usage, err = exporter.Stop()
	return took, usage, err
}

// awaitChange waits until the file grows, by an update.
func (t *trial) awaitChange(ctx context.Context, exporter *harness.Exporter) (err error) {
	file, err := os.Open(t.output)
	if err != nil {
		return fmt.Errorf("follow the file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := file.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("follow the file: %w", err)
	}
	line := make([]byte, 16<<10)
	return exporter.Await(ctx, time.Millisecond, func() (bool, error) {
		n, _ := file.ReadAt(line, end) // there is nothing yet
		if n > 0 && !bytes.Contains(line[:n], []byte("updated")) {
			return false, fmt.Errorf("the first line is %s", line[:n])
		}
		return n > 0, nil
	})
}
