package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// contestant is one client over one protocol.
type contestant struct {
	name     string // what its figures begin with; "" is the product as it comes
	role     string
	http2    bool
	atFirst  int // events of the warm-up
	printRSS bool
}

func (c contestant) String() string {
	if c.http2 {
		return c.role + " over HTTP/2"
	}
	return c.role + " over HTTP/1.1"
}

// The contestants' places.
const (
	reader = iota
	reader1
	product
	product2
	informer
	contestants
)

func field() [contestants]contestant {
	return [contestants]contestant{
		reader:   {name: "copy_", role: "copy", http2: true, atFirst: 20_000, printRSS: true},
		reader1:  {name: "copy_http1_", role: "copy", atFirst: 20_000},
		product:  {name: "", role: "source", atFirst: 20_000, printRSS: true},
		product2: {name: "http2_", role: "source", http2: true, atFirst: 20_000},
		informer: {name: "informer_", role: "informer", http2: true, atFirst: 1_000, printRSS: true},
	}
}

// match is the contestants' results so far.
type match struct {
	min     float64
	rounds  int
	span    time.Duration
	profile string

	address replay.Address
	events  [contestants]int // of one round
	results harness.Results  // by the contestant's String
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.Float64Var(&m.min, "min", 0.60, "fail below this ratio of source to reading and discarding over HTTP/2")
	flags.IntVar(&m.rounds, "rounds", 5, "how often every client runs; the figures are medians")
	flags.DurationVar(&m.span, "span", 2*time.Second, "how long a client reads in a round")
	flags.StringVar(&m.profile, "cpuprofile", "", "only profile the product's client, into this file")
}

// measure runs the rounds. It fails where source is too far from the limit.
func (m *match) measure(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	m.address = r.Address
	if m.profile != "" {
		return nil, m.profileProduct(ctx)
	}
	if err := m.warmUp(ctx); err != nil {
		return nil, err
	}
	for range m.rounds {
		if err := m.round(ctx); err != nil {
			return nil, err
		}
	}
	return m.figures(), harness.AtLeast("source.ratio_to_copy", m.ratio(product, reader), m.min)
}

// warmUp finds how many events each client takes in the span.
func (m *match) warmUp(ctx context.Context) error {
	for i, c := range field() {
		measured, err := m.run(ctx, c, client.Spec{Events: c.atFirst})
		if err != nil {
			return err
		}
		m.events[i] = max(c.atFirst, int(measured.PerSecond()*m.span.Seconds()))
	}
	return nil
}

// round runs every client once. Rounds are short and many, so that a slow minute of the machine is everybody's.
func (m *match) round(ctx context.Context) error {
	for i, c := range field() {
		measured, err := m.run(ctx, c, client.Spec{Events: m.events[i]})
		if err != nil {
			return err
		}
		m.results.Note(c.String(), measured)
	}
	return nil
}

// profileProduct runs the product's client alone.
func (m *match) profileProduct(ctx context.Context) error {
	c := field()[product]
	measured, err := m.run(ctx, c, client.Spec{Events: c.atFirst})
	if err != nil {
		return err
	}
	events := int(measured.PerSecond() * 5 * m.span.Seconds())
	_, err = m.run(ctx, c, client.Spec{Events: events, Profile: m.profile})
	return err
}

func (m *match) run(ctx context.Context, c contestant, spec client.Spec) (harness.Measured, error) {
	spec.Host, spec.CA, spec.HTTP2 = m.address.Host(replay.World{Events: spec.Events}), m.address.CA, c.http2
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var measured harness.Measured
	err := harness.Call(ctx, c.role, spec, &measured)
	if err != nil {
		return measured, fmt.Errorf("run %s: %w", c, err)
	}
	return measured, nil
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	var all []harness.Figure
	for i, c := range field() {
		all = append(all, harness.Figure{
			Name:  "source." + c.name + "events_per_cpu_second",
			Value: m.median(i, harness.Measured.PerCPUSecond), Unit: "events/s",
		})
	}
	all = append(all,
		harness.Figure{Name: "source.ratio_to_copy", Value: m.ratio(product, reader), Unit: "ratio"},
		harness.Figure{Name: "source.ratio_to_copy_http1", Value: m.ratio(product, reader1), Unit: "ratio"},
		harness.Figure{Name: "source.ratio_to_informer", Value: m.ratio(product, informer), Unit: "ratio"},
	)
	for i, c := range field() {
		if c.printRSS {
			all = append(all, harness.Figure{Name: "source." + c.name + "rss_mib", Value: m.median(i, harness.Measured.PeakMiB), Unit: "MiB"})
		}
	}
	return all
}

func (m *match) median(i int, value func(harness.Measured) float64) float64 {
	return m.results.Median(field()[i].String(), value)
}

func (m *match) ratio(of, to int) float64 {
	return m.results.Ratio(field()[of].String(), field()[to].String())
}
