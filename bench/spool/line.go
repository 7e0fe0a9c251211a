package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
	l.first, err = l.metric(ctx, `kubecdc_sink_records_total{resource="pods",sink="file"}`)
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
		n, err := l.metric(ctx, `kubecdc_sink_records_total{resource="pods",sink="`+sink+`"}`)
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

// address is where the exporter serves its metrics, and its process id. The file of the state that says so has them
// first.
func (l *line) address() (address, pid string, err error) {
	text, err := os.ReadFile(filepath.Join(l.dir, "state", "address"))
	fields := strings.Fields(string(text))
	if err != nil {
		return "", "", fmt.Errorf("read where the exporter listens: %w", err)
	}
	if len(fields) < 2 {
		return "", "", fmt.Errorf("read where the exporter listens: %q is no address with a process id", text)
	}
	return fields[0], fields[1], nil
}

func (l *line) pid(context.Context) (int, error) {
	_, pid, err := l.address()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(pid)
}

// metric is the value of a series, 0 where there is none.
func (l *line) metric(ctx context.Context, series string) (float64, error) {
	var found float64
	err := l.metrics(ctx, func(name string, value float64) {
		if name == series {
			found = value
		}
	})
	return found, err
}

// delivery is how late records were in the file.
type delivery struct{ records, seconds, prompt float64 }

func (l *line) delivery(ctx context.Context) (d delivery, err error) {
	err = l.metrics(ctx, func(name string, value float64) {
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

var clusterLabel = regexp.MustCompile(`\{cluster="[^"]*",?`)

// metrics gives each series with its value.
func (l *line) metrics(ctx context.Context, give func(name string, value float64)) (err error) {
	address, _, err := l.address()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, 8<<20)); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		if err != nil {
			return err
		}
		give(clusterLabel.ReplaceAllString(lines.Text()[:at], "{"), value)
	}
	return nil
}
