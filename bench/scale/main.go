// Command scale measures the exporter's binary with a file: what an event costs when the same number of them a second
// comes in 1, 4, 16 or 64 streams, and what a byte costs in objects from 1 to 512 KiB.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

const (
	// podBytes is the size of the objects that come in many streams, that of the fixture.
	podBytes = 12 << 10
	// seconds is how long a rate is kept up.
	seconds = 5
)

func main() {
	s := scale{costs: map[string][]float64{}}
	rig.Main(harness.Benchmark{Name: "scale", Limit: 10 * time.Minute, Flags: s.flags}, s.run)
}

func streamCounts() []int { return []int{1, 4, 16, 64} }

func sizes() []int { return []int{1, 4, 16, 64, 512} } // KiB

// scale is the results so far.
type scale struct {
	rounds, rate, mib int

	rig   *rig.Rig
	costs map[string][]float64 // by the figure's name
}

func (s *scale) flags(flags *flag.FlagSet) {
	flags.IntVar(&s.rounds, "rounds", 3, "how often each case runs; the figures are medians")
	flags.IntVar(&s.rate, "rate", 6400, "events a second over all streams")
	flags.IntVar(&s.mib, "mib", 256, "how many MiB of events of each size are sent, at most 100,000 events")
}

func (s *scale) run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	s.rig = r
	for i := range s.rounds {
		if err := errors.Join(s.streams(ctx, i), s.sizes(ctx, i)); err != nil {
			return nil, err
		}
	}
	return s.figures(), nil
}

func streamsName(n int) string { return fmt.Sprintf("scale.streams_%d_us_per_event", n) }

func sizeName(kib int) string { return fmt.Sprintf("scale.size_%dkib_ns_per_byte", kib) }

// streams spreads one rate over more and more of them.
func (s *scale) streams(ctx context.Context, round int) error {
	for _, n := range streamCounts() {
		w := replay.World{
			Run: fmt.Sprint("streams", n, "-", round), Kinds: n, ObjectBytes: podBytes, Rate: s.rate / n, Events: seconds * s.rate / n,
		}
		measured, err := s.flow(ctx, w)
		if err != nil {
			return err
		}
		s.costs[streamsName(n)] = append(s.costs[streamsName(n)], 1e6/measured.PerCPUSecond())
	}
	return nil
}

// sizes sends as many bytes in larger and larger objects, as fast as they are taken.
func (s *scale) sizes(ctx context.Context, round int) error {
	for _, kib := range sizes() {
		events := min(s.mib<<10/kib, 100_000)
		w := replay.World{Run: fmt.Sprint("size", kib, "-", round), Kinds: 1, ObjectBytes: kib << 10, Events: events}
		measured, err := s.flow(ctx, w)
		if err != nil {
			return err
		}
		cost := 1e9 / measured.PerCPUSecond() / float64(kib<<10)
		s.costs[sizeName(kib)] = append(s.costs[sizeName(kib)], cost)
	}
	return nil
}

func (s *scale) flow(ctx context.Context, w replay.World) (harness.Measured, error) {
	m, err := s.rig.Flow(ctx, w)
	if err != nil {
		return m, fmt.Errorf("run %s: %w", w.Run, err)
	}
	fmt.Fprintf(os.Stderr, "%-12s %6d events, %5.2f s, %5.2f s CPU, %6.1f us/event, %5.1f MiB\n",
		w.Run, m.Events, m.Wall.Seconds(), m.CPU.Seconds(), 1e6/m.PerCPUSecond(), float64(m.PeakRSS)/(1<<20))
	return m, nil
}

func (s *scale) figures() []harness.Figure {
	var all []harness.Figure
	var costs []float64
	for _, n := range streamCounts() {
		cost := harness.Median(s.costs[streamsName(n)])
		costs = append(costs, cost)
		all = append(all, harness.Figure{Name: streamsName(n), Value: cost, Unit: "us"})
	}
	all = append(all, harness.Figure{Name: "scale.streams_spread", Value: slices.Max(costs) / slices.Min(costs), Unit: "ratio"})
	for _, kib := range sizes() {
		all = append(all, harness.Figure{Name: sizeName(kib), Value: harness.Median(s.costs[sizeName(kib)]), Unit: "ns"})
	}
	return all
}
