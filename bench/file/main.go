// Command file measures the whole line: the exporter's binary brings the changes of 12 KiB Pods from a watch into a
// file, durable and with its state saved, beside itself with rules.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() { rig.Main(harness.Benchmark{Name: "file", Limit: 5 * time.Minute}, run) }

const rounds, events = 5, 60_000

// rules let every event pass, after a look at each: a filter on a status field, a cut, and hidden variables.
const rules = `filter: 'object.status.phase == "Running"', drop: [.spec.tolerations], ` +
	`redactEnv: ["*PASSWORD*", "*TOKEN*"]`

func run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	results := harness.Results{}
	for round := range rounds {
		for name, with := range map[string]string{"exporter": "", "rules": rules} {
			w := replay.World{Run: fmt.Sprint(name, round), Events: events}
			path := filepath.Join(r.Dir, w.Run, "changes.ndjson")
			writing, stop := context.WithCancel(ctx)
			go forget(writing, path)
			const config = "resources: [{resource: pods, %s}]\nsinks: [{file: {path: %q}}]\n"
			measured, err := r.Flow(ctx, w, fmt.Sprintf(config, with, path))
			stop()
			if err != nil {
				return nil, fmt.Errorf("run %s: %w", w.Run, err)
			}
			results.Note(name, measured)
		}
	}
	figures := append(results.Figures("file.", "exporter"), results.Figures("file.rules_", "rules")...)
	return append(figures, harness.Figure{Name: "file.rules_ratio", Value: results.Ratio("rules", "exporter"), Unit: "ratio"}), nil
}

// forget takes what is on disk of the file out of the page cache, until ctx ends. So every run finds memory to write to
// that was just used: in a virtual machine the first use of a page can cost several times as much as writing to it,
// which would be the largest and most fickle part of every figure.
func forget(ctx context.Context, path string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		if file, err := os.Open(path); err == nil {
			_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED) // without it the figure is only less steady
			file.Close()
		}
	}
}
