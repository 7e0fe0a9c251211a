package rig

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
)

// Flow measures what the events of a world cost an exporter: it starts one, with a fresh state, waits until it watches all
// that it is told to, lets the events go, and measures until all are in the file. The resources are those of the world:
// Pods, or its custom ones if it has any.
func (r *Rig) Flow(ctx context.Context, w replay.World) (m harness.Measured, err error) {
	w.Held = true
	line, err := r.NewLine(w.Run)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, line.Remove()) }()
	streams := 1
	if w.Kinds > 0 {
		line.Resources, streams = replay.Custom, w.Kinds
	}
	output, err := line.Follow()
	if err != nil {
		return m, err
	}
	defer output.Close()
	exporter, err := line.Start(w)
	if err != nil {
		return m, err
	}
	defer exporter.Kill()
	if err := r.AwaitWatches(ctx, exporter, w, streams); err != nil {
		return m, err
	}
	before, err := output.Lines() // of the first snapshots
	if err != nil {
		return m, err
	}
	m.Events = streams * w.Events
	m.CPU, m.Wall, err = r.release(ctx, w, exporter, output.Has(before+m.Events))
	if err != nil {
		return m, err
	}
	usage, err := exporter.Stop()
	m.PeakRSS = usage.PeakRSS
	return m, err
}

// release lets the events go and measures until they have arrived.
func (r *Rig) release(ctx context.Context, w replay.World, e *harness.Exporter, arrived func() (bool, error)) (cpu, wall time.Duration, err error) {
	before, err := e.Usage()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := r.Desk.Release(ctx, w); err != nil {
		return 0, 0, err
	}
	if err := e.Await(ctx, Poll, arrived); err != nil {
		return 0, 0, err
	}
	after, err := e.Usage()
	return after.CPU - before.CPU, time.Since(began), err
}

// watches is a condition to wait for: so many watches are open.
func (r *Rig) watches(ctx context.Context, w replay.World, want int) func() (bool, error) {
	return func() (bool, error) {
		counts, err := r.Desk.Counts(ctx, w)
		return counts.Watches >= want, err
	}
}

// AwaitWatches waits until the exporter has so many watches open.
func (r *Rig) AwaitWatches(ctx context.Context, e *harness.Exporter, w replay.World, want int) error {
	return e.Await(ctx, Poll, r.watches(ctx, w, want))
}
