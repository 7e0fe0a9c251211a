package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// line is a running exporter whose watch is open, and brings nothing before release.
type line struct {
	*rig.Line
	world    replay.World
	exporter *harness.Exporter
}

func (c *course) start(ctx context.Context, w replay.World, config string) (*line, error) {
	w.Held = true
	inner, err := c.rig.NewLine(w.Run)
	if err != nil {
		return nil, err
	}
	inner.Config = config
	l := &line{Line: inner, world: w}
	if l.exporter, err = inner.Start(w); err != nil {
		return nil, err
	}
	if err := c.rig.AwaitWatches(ctx, l.exporter, w, 1); err != nil {
		l.exporter.Kill()
		return nil, err
	}
	return l, nil
}

// end ends it at once: a sink that hangs would hold up an end in order.
func (l *line) end() error {
	l.exporter.Kill()
	return l.Remove()
}

// release lets the events go, and says when.
func (l *line) release(ctx context.Context) (time.Time, error) {
	began := time.Now()
	return began, l.Desk.Release(ctx, l.world)
}

// await returns when the sink has so many events.
func (l *line) await(ctx context.Context, sink string, events int) error {
	err := l.exporter.Await(ctx, 5*rig.Poll, func() (bool, error) {
		n, err := l.Metric(ctx, `kubecdc_sink_records_total{resource="pods",sink="`+sink+`"}`)
		return n >= float64(events), err
	})
	if err != nil {
		err = fmt.Errorf("wait for %d events in %s: %w", events, sink, err)
	}
	return errors.Join(err, ctx.Err())
}
