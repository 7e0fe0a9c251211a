// Command stages measures each stage of the line alone, on the 12 KiB Pod of the fixture, and beside their sum what an
// event costs the exporter's binary as a whole. All times are CPU time of the whole process, its garbage collector with
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	m := &match{costs: map[string][]float64{}, allocs: map[string][]float64{}}
	rig.Main(harness.Benchmark{
		Name: "stages", Limit: 5 * time.Minute, Roles: map[string]harness.Role{"copy": client.Measure(client.Copy)}, Flags: m.flags,
	}, m.run)
}

// match is what was measured so far.
type match struct {
	events, rounds int
	costs, allocs  map[string][]float64 // by the name of the stage
	sums, wholes   []float64
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.events, "events", 60_000, "how many events each stage, and the exporter, is sent in a round")
	flags.IntVar(&m.rounds, "rounds", 5, "how often each is measured; the figures are medians")
}

// run measures all stages and the whole in turn: on a machine that is slower for a while, both are.
func (m *match) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	testing.Init()
	if err := flag.Set("test.benchtime", fmt.Sprintf("%dx", m.events)); err != nil {
		return nil, err
	}
	set, err := newSetup(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	for i := range m.rounds {
		if err := m.round(ctx, r, set, i); err != nil {
			return nil, err
		}
	}
	return m.figures(set), nil
}

// stage is one of the line. Its benchmark takes as many events as it is told, and reports an error by b.Fatal.
type stage struct {
	name   string
	events func(b testing.TB, n int)
	// apart says that the stage is not on the way of a watch's event, and not in the sum.
	apart bool
}

// round measures everything once. The read is part of the sum, too.
func (m *match) round(ctx context.Context, r *rig.Rig, set *setup, i int) error {
	sum, err := read(ctx, r, replay.World{Run: fmt.Sprint("read", i), Events: m.events})
	if err != nil {
		return err
	}
	m.costs["read"] = append(m.costs["read"], sum)
	for _, one := range set.stages() {
		if err := set.renew(); err != nil {
			return err
		}
		cost, allocs := harness.Cost(one.events)
		m.costs[one.name], m.allocs[one.name] = append(m.costs[one.name], cost), append(m.allocs[one.name], allocs)
		if !one.apart {
			sum += cost
		}
	}
	whole, err := r.Flow(ctx, replay.World{Run: fmt.Sprint("whole", i), Events: m.events})
	if err != nil {
		return err
	}
	m.sums, m.wholes = append(m.sums, sum), append(m.wholes, 1e9/whole.PerCPUSecond())
	return nil
}

// figures are the medians of the rounds.
func (m *match) figures(set *setup) []harness.Figure {
	all := []harness.Figure{{Name: "stage.read_ns_per_event", Value: harness.Median(m.costs["read"]), Unit: "ns"}}
	for _, one := range set.stages() {
		all = append(all,
			harness.Figure{Name: "stage." + one.name + "_ns_per_event", Value: harness.Median(m.costs[one.name]), Unit: "ns"},
			harness.Figure{Name: "stage." + one.name + "_allocs_per_event", Value: harness.Median(m.allocs[one.name]), Unit: "allocs"},
		)
	}
	var explained []float64
	for i := range m.sums {
		explained = append(explained, m.sums[i]/m.wholes[i])
	}
	return append(all,
		harness.Figure{Name: "stage.sum_ns_per_event", Value: harness.Median(m.sums), Unit: "ns"},
		harness.Figure{Name: "stage.whole_ns_per_event", Value: harness.Median(m.wholes), Unit: "ns"},
		harness.Figure{Name: "stage.sum_to_whole", Value: harness.Median(explained), Unit: "ratio"},
	)
}

// read is what it costs to read an event from a connection, in nanoseconds: a client that discards it.
func read(ctx context.Context, r *rig.Rig, w replay.World) (float64, error) {
	spec := client.Spec{Host: r.Address.Host(w), CA: r.Address.CA, Events: w.Events}
	var measured harness.Measured
	if err := harness.Call(ctx, "copy", spec, &measured); err != nil {
		return 0, err
	}
	return 1e9 / measured.PerCPUSecond(), nil
}

// loop repeats a text for ever, in the pieces of a TLS connection.
type loop struct {
	text []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 16<<10)], l.text[l.at:])
	l.at = (l.at + n) % len(l.text)
	return n, nil
}

func fail(b testing.TB, what string, err error) {
	if err != nil {
		b.Fatal(fmt.Errorf("%s: %w", what, err))
	}
}
