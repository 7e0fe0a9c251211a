// Command hot measures whether one resource that changes without end outruns the exporter: 5,000 changes a second of 12
// KiB Pods, with a filter on a status field, a cut and hidden variables, from a watch into a real Apache Kafka. The
// exporter's binary has one core (GOMAXPROCS=1).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var h heat
	rig.Main(harness.Benchmark{Name: "hot", Limit: 10 * time.Minute, Flags: h.flags}, h.run)
}

// config lets every event pass, after a look at each.
const config = `resources:
  - {resource: pods, filter: 'object.status.phase == "Running"', drop: [.spec.tolerations], redactEnv: ["*PASSWORD*", "*TOKEN*"]}
sinks: [{name: kafka, kafka: {brokers: [%q], topic: hot}}]
`

// The series that are looked at.
const (
	written = `kubecdc_sink_records_total{resource="pods",sink="kafka"}`
	age     = `kubecdc_position_age_seconds{resource="pods"}`
)

// heat is the measure so far.
type heat struct {
	rate, seconds int

	rig     *rig.Rig
	brokers []string

	wall, cpu time.Duration // until every event is durable
	age       float64       // the largest of the position that was seen
	behind    float64       // the most events that the server had sent, and that were not durable
}

func (h *heat) flags(flags *flag.FlagSet) {
	flags.IntVar(&h.rate, "rate", 5000, "how many changes a second the server sends")
	flags.IntVar(&h.seconds, "seconds", 20, "for how long")
}

func (h *heat) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	h.rig = r
	if h.brokers, err = r.Kafka(ctx); err != nil {
		return nil, err
	}
	if err := os.Setenv("GOMAXPROCS", "1"); err != nil { // of the exporter: the server runs already
		return nil, fmt.Errorf("give the exporter one core: %w", err)
	}
	if err := h.flow(ctx); err != nil {
		return nil, err
	}
	return h.figures(), nil
}

// flow lets the events go, and looks ten times a second until all are durable.
func (h *heat) flow(ctx context.Context) (err error) {
	w := replay.World{Run: "hot", Rate: h.rate, Events: h.rate * h.seconds, Held: true}
	line, err := h.rig.NewLine(w.Run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, line.Remove()) }()
	line.Config = fmt.Sprintf(config, strings.Join(h.brokers, `", "`))
	exporter, err := line.Start(w)
	if err != nil {
		return err
	}
	defer exporter.Kill()
	if err := h.rig.AwaitWatches(ctx, exporter, w, 1); err != nil {
		return err
	}
	first, err := line.Metric(ctx, written)
	if err != nil {
		return err
	}
	before, err := exporter.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := h.rig.Desk.Release(ctx, w); err != nil {
		return err
	}
	const look = 100 * time.Millisecond
	err = exporter.Await(ctx, look, func() (bool, error) { return h.look(ctx, line, &sight{first, began, w.Events}) })
	if err != nil {
		return err
	}
	h.wall = time.Since(began)
	after, err := exporter.Usage()
	h.cpu = after.CPU - before.CPU
	if err != nil {
		return err
	}
	_, err = exporter.Stop()
	return err
}

// sight is what is known when the events begin.
type sight struct {
	first  float64 // records that were durable
	began  time.Time
	events int
}

// look notes how far the exporter is behind, and says whether all is durable. The position's first second is not its
// age under load.
func (h *heat) look(ctx context.Context, line *rig.Line, s *sight) (bool, error) {
	var durable, old float64
	err := line.Metrics(ctx, func(name string, value float64) {
		switch name {
		case written:
			durable = value - s.first
		case age:
			old = value
		}
	})
	since := time.Since(s.began)
	sent := min(since.Seconds()*float64(h.rate), float64(s.events))
	h.behind = max(h.behind, sent-durable)
	if since > time.Second && durable < float64(s.events) {
		h.age = max(h.age, old)
	}
	return durable >= float64(s.events), err
}

// figures say what was sent, what was kept up with, and what of the core that took.
func (h *heat) figures() []harness.Figure {
	events := float64(h.rate * h.seconds)
	return []harness.Figure{
		{Name: "hot.sent_events_per_second", Value: float64(h.rate), Unit: "events/s"},
		{Name: "hot.keeps_up_events_per_second", Value: events / h.wall.Seconds(), Unit: "events/s"},
		{Name: "hot.position_age_seconds", Value: h.age, Unit: "s"},
		{Name: "hot.behind_seconds", Value: h.behind / float64(h.rate), Unit: "s"},
		{Name: "hot.cores", Value: h.cpu.Seconds() / h.wall.Seconds(), Unit: "cores"},
		{Name: "hot.events_per_cpu_second", Value: events / h.cpu.Seconds(), Unit: "events/s"},
	}
}
