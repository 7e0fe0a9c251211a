package rig

import (
	"context"
	"errors"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
)

// Flow measures what the events of a world cost an exporter: it starts one, with a fresh state, waits until it watches
// all that it is told to, lets the events go, and measures until all are in the file. The resources are those of the
// world: Pods, or its custom ones if it has any.
func (r *Rig) Flow(ctx context.Context, w replay.World) (harness.Measured, error) {
	return r.FlowBy(ctx, w, "", "")
}

// FlowBy is Flow with rules of Pods and further keys of the sink: YAML of the keys of a resource, and of a sink.
func (r *Rig) FlowBy(ctx context.Context, w replay.World, rules, keys string) (m harness.Measured, err error) {
	line, err := r.NewLine(w.Run)
	if err != nil {
		return m, err
	}
	line.Rules, line.FileKeys = rules, keys
	defer func() { err = errors.Join(err, line.Remove()) }()
	output, err := line.Follow()
	if err != nil {
		return m, err
	}
	defer output.Close()
	m, _, err = line.flow(ctx, w, func(context.Context) (int, error) { return output.Lines() })
	return m, err
}

// Sink is where an exporter writes to instead of its file.
type Sink struct {
	// Config is the exporter's configuration of it, YAML with the key sinks.
	Config string
	// Count is how many records it has that readers see.
	Count func(ctx context.Context) (int, error)
}

// FlowTo is Flow into another sink. The CPU time is that up to the end of the process, which has saved everything then.
func (r *Rig) FlowTo(ctx context.Context, w replay.World, to Sink) (m harness.Measured, err error) {
	line, err := r.NewLine(w.Run)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, line.Remove()) }()
	line.Config = to.Config
	m, saved, err := line.flow(ctx, w, to.Count)
	m.CPU = saved
	return m, err
}

// flow measures until so many records have arrived as the world has events, and the CPU time until all is saved.
func (l *Line) flow(ctx context.Context, w replay.World, count func(context.Context) (int, error)) (m harness.Measured, saved time.Duration, err error) {
	w.Held = true
	streams := 1
	if w.Kinds > 0 {
		l.Resources, streams = replay.Custom, w.Kinds
	}
	exporter, err := l.Start(w)
	if err != nil {
		return m, 0, err
	}
	defer exporter.Kill()
	if err := l.AwaitWatches(ctx, exporter, w, streams); err != nil {
		return m, 0, err
	}
	first, err := count(ctx) // of the first snapshots
	if err != nil {
		return m, 0, err
	}
	before, err := exporter.Usage()
	if err != nil {
		return m, 0, err
	}
	m.Events = streams * w.Events
	m.CPU, m.Wall, err = l.release(ctx, w, exporter, func() (bool, error) {
		n, err := count(ctx)
		return n >= first+m.Events, err
	})
	if err != nil {
		return m, 0, err
	}
	usage, err := exporter.Stop()
	m.PeakRSS = usage.PeakRSS
	return m, usage.CPU - before.CPU, err
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
