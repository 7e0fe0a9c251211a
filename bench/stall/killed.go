package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// thirdStream is that of the sink that is new at the end.
const thirdStream = "THIRD"

// betweenKills is how long an exporter lives that has no snapshot to read.
const betweenKills = 3 * time.Second

// killAll measures how late changes are while the exporter is killed, without a snapshot and during that of a new sink.
func (t *trial) killAll(ctx context.Context) ([]harness.Figure, error) {
	t.exporter.Kill() // it told of a gap, for the API server was restarted
	if err := t.start(t.sinks); err != nil {
		return nil, err
	}
	quiet, err := t.during(ctx, func() error { return t.killQuiet(ctx) })
	if err != nil {
		return nil, err
	}
	killed, err := t.during(ctx, func() error { return t.killInSnapshot(ctx) })
	if err != nil {
		return nil, err
	}
	return []harness.Figure{
		{Name: "stall.killed_worst_ms", Value: harness.Percentile(killed.latencies[0], 100), Unit: "ms"},
		{Name: "stall.quiet_killed_worst_ms", Value: harness.Percentile(quiet.latencies[0], 100), Unit: "ms"},
		{Name: "stall.killed_seconds", Value: killed.took.Seconds(), Unit: "s"},
	}, nil
}

func (t *trial) killQuiet(ctx context.Context) error {
	for range t.kills {
		select {
		case <-time.After(betweenKills):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := t.killAndStart(t.sinks); err != nil {
			return err
		}
	}
	return nil
}

// killInSnapshot configures the third sink, kills the exporter at equal parts of its snapshot, and returns when that
// sink has all objects.
func (t *trial) killInSnapshot(ctx context.Context) error {
	for i := range t.kills + 1 {
		if err := t.killAndStart(t.sinks + t.third); err != nil {
			return err
		}
		if err := t.logs[2].Await(ctx, t.exporter, t.objects*(i+1)/(t.kills+1)); err != nil {
			return err
		}
	}
	return nil
}

// killAndStart lets another exporter go on with the sinks. That the one before told of a gap is an error.
func (t *trial) killAndStart(sinks string) error {
	t.exporter.Kill()
	if log := t.exporter.Log(); strings.Contains(log, "gap: ") {
		return errors.New("there was a gap: " + log)
	}
	if err := t.start(sinks); err != nil {
		return fmt.Errorf("start the exporter again: %w", err)
	}
	return nil
}
