package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

const (
	// objectBytes is about the size of an object.
	objectBytes = 1536
	// patience is the most that one run may take.
	patience = 5 * time.Minute
)

// match is the results so far.
type match struct {
	min             float64
	rounds, objects int // of the largest snapshot
	sinks           int
	files           rig.Profiles

	rig              *rig.Rig
	runs             int
	rss              map[int][]float64 // MiB, by the number of objects
	exporter, copied []float64         // objects per CPU second
	ratios           []float64
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.Float64Var(&m.min, "min", 0, "fail below this ratio of the exporter to reading and discarding")
	flags.IntVar(&m.rounds, "rounds", 1, "how often the largest snapshot is taken; the figures are medians")
	flags.IntVar(&m.objects, "objects", 1_000_000, "the largest number of objects")
	flags.IntVar(&m.sinks, "sinks", 1, "how many files each snapshot goes to")
	m.files.Flags(flags)
}

func (m *match) run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	if m.files.CPU != "" {
		w := replay.World{Run: "inside", Objects: m.objects, ObjectBytes: objectBytes}
		return nil, r.Profile(ctx, w, m.objects+2, m.files)
	}
	m.rig = r
	for range m.rounds {
		for _, objects := range []int{m.objects / 100, m.objects / 10, m.objects} {
			if err := m.round(ctx, objects, objects == m.objects); err != nil {
				return nil, err
			}
		}
	}
	return m.figures(), harness.AtLeast("snapshot.ratio_to_copy", harness.Median(m.ratios), m.min)
}

// round takes a snapshot; where it is compared, between two copies of the same lists.
func (m *match) round(ctx context.Context, objects int, compared bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.runs++
	w := replay.World{Run: fmt.Sprint("snapshot", m.runs), Objects: objects, ObjectBytes: objectBytes}
	before, err := m.copyIf(ctx, compared, w)
	if err != nil {
		return err
	}
	rate, err := m.snapshot(ctx, w)
	if err != nil {
		return fmt.Errorf("take a snapshot of %d objects: %w", objects, err)
	}
	after, err := m.copyIf(ctx, compared, w)
	if err != nil || !compared {
		return err
	}
	limit := (before + after) / 2
	m.exporter, m.copied, m.ratios = append(m.exporter, rate), append(m.copied, limit), append(m.ratios, rate/limit)
	return nil
}

func (m *match) copyIf(ctx context.Context, compared bool, w replay.World) (float64, error) {
	if !compared {
		return 0, nil
	}
	var measured harness.Measured
	err := harness.Call(ctx, "copy", copySpec{Host: m.rig.Address.Host(w), CA: m.rig.Address.CA, Objects: w.Objects}, &measured)
	if err != nil {
		return 0, err
	}
	tell("copy", measured.Events, measured.CPU, measured.Wall, measured.PeakRSS)
	return measured.PerCPUSecond(), nil
}

// snapshot runs an exporter with a fresh state until the last line of the snapshot is in the file.
func (m *match) snapshot(ctx context.Context, w replay.World) (rate float64, err error) {
	line, err := m.rig.NewLine(w.Run)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, line.Remove()) }()
	output, err := line.Follow()
	if err != nil {
		return 0, err
	}
	defer output.Close()
	outputs := []*rig.Follower{output}
	for i := 1; i < m.sinks; i++ {
		path := filepath.Join(m.rig.Dir, w.Run, fmt.Sprintf("other-%d.ndjson", i))
		line.Sinks = append(line.Sinks, fmt.Sprintf("file://%s?name=other-%d", path, i))
		other, err := rig.Follow(path)
		if err != nil {
			return 0, err
		}
		defer other.Close()
		outputs = append(outputs, other)
	}
	exporter, err := line.Start(w)
	if err != nil {
		return 0, err
	}
	defer exporter.Kill()
	const frames = 2 // begin and end
	for _, output := range outputs {
		if err := exporter.Await(ctx, rig.Poll, output.Has(w.Objects+frames)); err != nil {
			return 0, err
		}
	}
	took := time.Since(exporter.Began)
	usage, err := exporter.Stop()
	if err != nil {
		return 0, err
	}
	tell("exporter", w.Objects, usage.CPU, took, usage.PeakRSS)
	m.rss[w.Objects] = append(m.rss[w.Objects], mib(usage.PeakRSS))
	for _, output := range outputs {
		err = errors.Join(err, complete(output, w.Objects))
	}
	return float64(w.Objects) / usage.CPU.Seconds(), err
}

// complete says whether the file ends as a whole snapshot does, with no line too many.
func complete(output *rig.Follower, objects int) error {
	last, err := output.Last()
	if err != nil {
		return err
	}
	lines, err := output.Lines()
	if err != nil {
		return err
	}
	if !strings.Contains(last, "snapshot.end") || !strings.Contains(last, fmt.Sprintf(`"replaced":%d,`, objects)) || lines != objects+2 {
		return fmt.Errorf("the snapshot of %d objects has %d lines and ends with %s", objects, lines, last)
	}
	return nil
}

func tell(who string, objects int, cpu, wall time.Duration, peak int64) {
	fmt.Fprintf(os.Stderr, "%-10s %8d objects, %6.2f s, %6.2f s CPU, %7.0f objects/CPU-s, %5.1f MiB\n",
		who, objects, wall.Seconds(), cpu.Seconds(), float64(objects)/cpu.Seconds(), mib(peak))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	var all []harness.Figure
	for i, name := range []string{"10k", "100k", "1m"} {
		n := m.objects / []int{100, 10, 1}[i]
		all = append(all, harness.Figure{Name: "snapshot." + name + "_rss_mib", Value: harness.Median(m.rss[n]), Unit: "MiB"})
	}
	return append(all,
		harness.Figure{Name: "snapshot.events_per_cpu_second", Value: harness.Median(m.exporter), Unit: "events/s"},
		harness.Figure{Name: "snapshot.copy_events_per_cpu_second", Value: harness.Median(m.copied), Unit: "events/s"},
		harness.Figure{Name: "snapshot.ratio_to_copy", Value: harness.Median(m.ratios), Unit: "ratio"},
	)
}
