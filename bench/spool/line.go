package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

const output = "changes.ndjson"

// line is a running exporter with a file and a sink that spools.
type line struct {
	*rig.Line
	world    replay.World
	exporter *harness.Exporter
	dir      string
	written  int64   // bytes that the process has written to disk in the measure
	first    float64 // records that each sink had before the events
}

// start returns when the watch is open.
func (c *course) start(ctx context.Context, w replay.World) (*line, error) {
	w.Held = true
	inner, err := c.rig.NewLine(w.Run)
	if err != nil {
		return nil, err
	}
	l := &line{Line: inner, world: w, dir: filepath.Join(c.rig.Dir, w.Run)}
	inner.Config = fmt.Sprintf(`sinks:
- {name: bus, nats: {url: %q, stream: %s, subject: "%s.{resource}.{name}"}, queue: {records: 1000, full: spool}}
- {name: file, file: {path: %q}}
`, c.server.URL, strings.ToUpper(w.Run), w.Run, filepath.Join(l.dir, output))
	if l.exporter, err = inner.Start(w); err != nil {
		return nil, err
	}
	if err := c.rig.AwaitWatches(ctx, l.exporter, w, 1); err != nil {
		l.exporter.Kill()
		return nil, err
	}
	l.first, err = l.Metric(ctx, `kubecdc_sink_records_total{resource="pods",sink="file"}`)
	return l, err
}

func (l *line) end() error {
	_, err := l.exporter.Stop()
	return errors.Join(err, l.Remove())
}

func (l *line) release(ctx context.Context) error { return l.Desk.Release(ctx, l.world) }

// await returns when the sink has all events.
func (l *line) await(ctx context.Context, sink string) error {
	return l.exporter.Await(ctx, 5*rig.Poll, func() (bool, error) {
		n, err := l.Metric(ctx, `kubecdc_sink_records_total{resource="pods",sink="`+sink+`"}`)
		return n >= l.first+float64(l.world.Events), err
	})
}

// measure takes what it costs until the sink has all events, once they are let go.
func (l *line) measure(ctx context.Context, sink string, letGo func(context.Context) error) (m harness.Measured, err error) {
	before, err := l.exporter.Usage()
	if err != nil {
		return m, err
	}
	wrote, err := l.diskBytes(ctx)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := letGo(ctx); err != nil {
		return m, err
	}
	if err := l.await(ctx, sink); err != nil {
		return m, err
	}
	after, err := l.exporter.Usage()
	if err != nil {
		return m, err
	}
	m = harness.Measured{Events: l.world.Events, CPU: after.CPU - before.CPU, Wall: time.Since(began), PeakRSS: after.PeakRSS}
	now, err := l.diskBytes(ctx)
	l.written = now - wrote
	return m, err
}

// diskBytes is what the process has caused to be written to disk.
func (l *line) diskBytes(ctx context.Context) (int64, error) {
	pid, err := l.pid(ctx)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	number, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(number, 10, 64)
}

func (l *line) pid(context.Context) (int, error) {
	_, pid, err := harness.Listening(l.StateDir())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(pid)
}

// delivery is how late records were in the file.
type delivery struct{ records, seconds, prompt float64 }

func (l *line) delivery(ctx context.Context) (d delivery, err error) {
	err = l.Metrics(ctx, func(name string, value float64) {
		switch name {
		case `kubecdc_delivery_seconds_count{sink="file"}`:
			d.records = value
		case `kubecdc_delivery_seconds_sum{sink="file"}`:
			d.seconds = value
		case `kubecdc_delivery_seconds_bucket{sink="file",le="0.016"}`:
			d.prompt = value
		}
	})
	return d, err
}
