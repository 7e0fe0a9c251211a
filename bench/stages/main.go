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
	var events int
	rig.Main(harness.Benchmark{
		Name: "stages", Limit: 5 * time.Minute, Roles: map[string]harness.Role{"copy": client.Measure(client.Copy)},
		Flags: func(flags *flag.FlagSet) {
			flags.IntVar(&events, "events", 60_000, "how many events the exporter is sent for the whole")
		},
	}, func(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) { return measure(ctx, r, events) })
}

func measure(ctx context.Context, r *rig.Rig, events int) (figures []harness.Figure, err error) {
	testing.Init()
	set, err := newSetup(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	read, err := read(ctx, r, events)
	if err != nil {
		return nil, err
	}
	figures, sum := set.figures(read)
	whole, err := r.Flow(ctx, replay.World{Run: "whole", Events: events})
	if err != nil {
		return figures, err
	}
	return append(figures,
		harness.Figure{Name: "stage.sum_ns_per_event", Value: sum, Unit: "ns"},
		harness.Figure{Name: "stage.whole_ns_per_event", Value: 1e9 / whole.PerCPUSecond(), Unit: "ns"},
	), nil
}

// stage is one of the line. Its benchmark takes as many events as it is told, and reports an error by b.Fatal.
type stage struct {
	name   string
	events func(b testing.TB, n int)
	// apart says that the stage is not on the way of a watch's event, and not in the sum.
	apart bool
}

// figures runs the stages. The read is part of the sum, too.
func (s *setup) figures(read float64) (all []harness.Figure, sum float64) {
	all, sum = []harness.Figure{{Name: "stage.read_ns_per_event", Value: read, Unit: "ns"}}, read
	for _, one := range s.stages() {
		cost, allocs := harness.Cost(one.events)
		all = append(all,
			harness.Figure{Name: "stage." + one.name + "_ns_per_event", Value: cost, Unit: "ns"},
			harness.Figure{Name: "stage." + one.name + "_allocs_per_event", Value: allocs, Unit: "allocs"},
		)
		if !one.apart {
			sum += cost
		}
	}
	return all, sum
}

// read is what it costs to read an event from a connection, in nanoseconds: a client that discards it.
func read(ctx context.Context, r *rig.Rig, events int) (float64, error) {
	spec := client.Spec{Host: r.Address.Host(replay.World{Run: "read", Events: events}), CA: r.Address.CA, Events: events}
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
