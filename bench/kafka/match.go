package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// The contestants beside the exporter's codecs.
const (
	reader   = "copy"       // over HTTP/2
	reader1  = "copy_http1" // over HTTP/1.1
	baseline = "baseline"
)

// transactional is the exporter with a transaction for each Write, and digests with records of what is resolved;
// idempotent is the same without.
const (
	transactional = "transactional"
	digests       = "digests"
	idempotent    = "snappy"
)

func codecs() []string { return []string{"none", "snappy", "zstd"} }

// match is the results so far.
type match struct {
	rounds, events, baseline int

	rig     *rig.Rig
	brokers []string
	results harness.Results
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.rounds, "rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&m.events, "events", 60_000, "how many events the exporter is sent in a round; the copy is sent twice as many")
	flags.IntVar(&m.baseline, "baseline", 2_000, "how many events the informer is sent in a round")
}

func (m *match) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	m.rig = r
	if m.brokers, err = r.Kafka(ctx); err != nil {
		return nil, err
	}
	for i := range m.rounds {
		if err := m.round(ctx, i); err != nil {
			return nil, err
		}
	}
	return m.figures(), nil
}

// round runs each client once.
func (m *match) round(ctx context.Context, i int) error {
	for _, name := range []string{reader, reader1, baseline} {
		if err := m.client(ctx, name, i); err != nil {
			return fmt.Errorf("run %s: %w", name, err)
		}
	}
	for _, codec := range codecs() {
		if err := m.exporter(ctx, contestant{codec, codec, ""}, i); err != nil {
			return fmt.Errorf("run the exporter with %s: %w", codec, err)
		}
	}
	if err := m.exporter(ctx, contestant{digests, idempotent, ", resolved: {every: 1s, digest: true}"}, i); err != nil {
		return fmt.Errorf("run the exporter with digests: %w", err)
	}
	if err := m.transactions(ctx, i); err != nil {
		return fmt.Errorf("run the exporter with transactions: %w", err)
	}
	return nil
}

func (m *match) client(ctx context.Context, name string, i int) (err error) {
	spec := client.Spec{CA: m.rig.Address.CA, Events: 2 * m.events, HTTP2: name != reader1}
	role := reader
	if name == baseline {
		role, spec.Events = baseline, m.baseline
		topic, err := newTopic(ctx, m.brokers, fmt.Sprint(name, i))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, topic.remove(context.WithoutCancel(ctx))) }()
		spec.Target = strings.Join(m.brokers, ",") + "/" + topic.name
	}
	spec.Host = m.rig.Address.Host(replay.World{Run: fmt.Sprint(name, i), Events: spec.Events})
	var measured harness.Measured
	if err := harness.Call(ctx, role, spec, &measured); err != nil {
		return err
	}
	m.results.Note(name, measured)
	return nil
}

// contestant is an exporter, with keys of its sink beside kafka, in YAML.
type contestant struct{ name, codec, keys string }

func (m *match) exporter(ctx context.Context, c contestant, i int) (err error) {
	name := fmt.Sprint(c.name, i)
	topic, err := newTopic(ctx, m.brokers, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, topic.remove(context.WithoutCancel(ctx))) }()
	to := rig.Sink{Config: topic.config("idempotent", c.codec, c.keys), Count: topic.count}
	return m.flow(ctx, c.name, replay.World{Run: name, Events: m.events}, to)
}

func (m *match) transactions(ctx context.Context, i int) (err error) {
	name := fmt.Sprint(transactional, i)
	topic, err := newCommittedTopic(ctx, m.brokers, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, topic.remove(context.WithoutCancel(ctx))) }()
	to := rig.Sink{Config: topic.config("transactional", idempotent, ""), Count: topic.committed}
	return m.flow(ctx, transactional, replay.World{Run: name, Events: m.events}, to)
}

func (m *match) flow(ctx context.Context, name string, w replay.World, to rig.Sink) error {
	measured, err := m.rig.FlowTo(ctx, w, to)
	if err != nil {
		return err
	}
	m.results.Note(name, measured)
	return nil
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	var all []harness.Figure
	for _, name := range append(codecs(), transactional, reader, reader1, baseline) {
		all = append(all, harness.Figure{
			Name: "kafka." + name + "_events_per_cpu_second", Value: m.results.Median(name, harness.Measured.PerCPUSecond), Unit: "events/s",
		})
	}
	for _, codec := range codecs() {
		for _, other := range []string{reader, reader1, baseline} {
			all = append(all, harness.Figure{Name: "kafka." + codec + "_ratio_to_" + other, Value: m.results.Ratio(codec, other), Unit: "ratio"})
		}
	}
	all = append(all, harness.Figure{
		Name: "kafka.transactional_ratio_to_idempotent", Value: m.results.Ratio(transactional, idempotent), Unit: "ratio",
	}, harness.Figure{Name: "kafka.digests_ratio", Value: m.results.Ratio(digests, idempotent), Unit: "ratio"})
	for _, name := range append(codecs(), transactional, baseline) {
		all = append(all, harness.Figure{Name: "kafka." + name + "_rss_mib", Value: m.results.Median(name, harness.Measured.PeakMiB), Unit: "MiB"})
	}
	return all
}
