// Command restart measures how soon an exporter with a million objects in its inventory is back: the time from its exec
// to the line of a new change, which the server sends at once, in the sink's file. It also counts that nothing is
// listed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var t trial
	rig.Main(harness.Benchmark{Name: "restart", Limit: 10 * time.Minute, Flags: t.flags}, t.run)
}

// trial is a series of restarts. Each life of the exporter finds one event more in the world than the one before.
type trial struct {
	max             float64
	rounds, objects int

	line    *rig.Line
	lives   int
	seconds map[bool][]float64 // whether the life before was killed
	rss     []float64
	lists   int
}

func (t *trial) flags(flags *flag.FlagSet) {
	flags.Float64Var(&t.max, "max", 0, "fail above so many seconds; 0 is never")
	flags.IntVar(&t.rounds, "rounds", 5, "how often the exporter is restarted, after a stop and after a kill; the figures are medians")
	flags.IntVar(&t.objects, "objects", 1_000_000, "how many objects are in the inventory")
}

func (t *trial) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	if t.line, err = r.NewLine("restart"); err != nil {
		return nil, err
	}
	t.seconds = map[bool][]float64{}
	if _, err := t.live(ctx, t.objects+2, false); err != nil {
		return nil, fmt.Errorf("fill the inventory: %w", err)
	}
	killed := false
	for i := range 2 * t.rounds {
		kill := i%2 == 0
		took, err := t.live(ctx, 1, kill)
		if err != nil {
			return nil, fmt.Errorf("restart: %w", err)
		}
		t.seconds[killed] = append(t.seconds[killed], took.Seconds())
		killed = kill
	}
	figures = []harness.Figure{
		{Name: "restart.first_change_seconds", Value: harness.Median(t.seconds[false]), Unit: "s"},
		{Name: "restart.first_change_after_kill_seconds", Value: harness.Median(t.seconds[true]), Unit: "s"},
		{Name: "restart.list_requests", Value: float64(t.lists), Unit: "requests"},
		{Name: "restart.rss_mib", Value: harness.Median(t.rss), Unit: "MiB"},
	}
	switch slow := figures[0].Value; {
	case t.lists > 0:
		err = fmt.Errorf("a restart listed: %d requests", t.lists)
	case t.max > 0 && slow > t.max:
		err = fmt.Errorf("restart.first_change_seconds is %.3f, above %.2f", slow, t.max)
	}
	return figures, err
}

// live starts the exporter, waits for so many lines, and ends it. It returns the time from the exec to the last of
// them.
func (t *trial) live(ctx context.Context, lines int, kill bool) (took time.Duration, err error) {
	w := replay.World{Run: fmt.Sprint("restart", t.lives), Objects: t.objects, ObjectBytes: 1536, Past: max(0, t.lives-1), Events: t.lives}
	output, err := t.line.Follow()
	if err != nil {
		return 0, err
	}
	defer output.Close()
	exporter, err := t.line.Start(w)
	if err != nil {
		return 0, err
	}
	defer exporter.Kill()
	poll := time.Millisecond
	if t.lives == 0 {
		poll = rig.Poll
	}
	if err := exporter.Await(ctx, poll, output.Has(lines)); err != nil {
		return 0, err
	}
	took = time.Since(exporter.Began)
	if last, err := output.Last(); err != nil || t.lives > 0 && !strings.Contains(last, "updated") {
		return 0, errors.Join(err, fmt.Errorf("the last line is %s", last))
	}
	usage, err := exporter.Usage()
	if err != nil {
		return took, err
	}
	if err := t.note(ctx, w, took, usage); err != nil {
		return took, err
	}
	t.lives++
	if kill {
		exporter.Kill()
		return took, nil
	}
	_, err = exporter.Stop()
	return took, err
}

// note takes down what a restart cost.
func (t *trial) note(ctx context.Context, w replay.World, took time.Duration, usage harness.Usage) error {
	counts, err := t.line.Desk.Counts(ctx, w)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "life %2d: %6.3f s, %5.2f s CPU, %5.1f MiB, asked %+v\n",
		t.lives, took.Seconds(), usage.CPU.Seconds(), float64(usage.PeakRSS)/(1<<20), counts)
	if t.lives > 0 {
		t.lists += counts.Lists
		t.rss = append(t.rss, float64(usage.PeakRSS)/(1<<20))
	}
	return nil
}
