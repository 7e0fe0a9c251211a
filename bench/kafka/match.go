package main

import (
	"context"
	"errors"
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

func codecs() []string { return []string{"none", "snappy", "zstd"} }

// match is the results so far.
type match struct {
	options
	rig     *rig.Rig
	brokers []string
	results harness.Results
}

// round runs each client once.
func (m *match) round(ctx context.Context, i int) error {
	for _, name := range []string{reader, reader1, baseline} {
		if err := m.client(ctx, name, i); err != nil {
			return fmt.Errorf("run %s: %w", name, err)
		}
	}
	for _, codec := range codecs() {
		if err := m.exporter(ctx, codec, i); err != nil {
			return fmt.Errorf("run the exporter with %s: %w", codec, err)
		}
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

func (m *match) exporter(ctx context.Context, codec string, i int) (err error) {
	name := fmt.Sprint(codec, i)
	topic, err := newTopic(ctx, m.brokers, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, topic.remove(context.WithoutCancel(ctx))) }()
	measured, err := m.rig.FlowTo(ctx, replay.World{Run: name, Events: m.events}, rig.Sink{Config: topic.config(codec), Count: topic.count})
	if err != nil {
		return err
	}
	m.results.Note(codec, measured)
	return nil
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	var all []harness.Figure
	for _, name := range append(codecs(), reader, reader1, baseline) {
		all = append(all, harness.Figure{
			Name: "kafka." + name + "_events_per_cpu_second", Value: m.results.Median(name, harness.Measured.PerCPUSecond), Unit: "events/s",
		})
	}
	for _, codec := range codecs() {
		for _, other := range []string{reader, reader1, baseline} {
			all = append(all, harness.Figure{Name: "kafka." + codec + "_ratio_to_" + other, Value: m.results.Ratio(codec, other), Unit: "ratio"})
		}
	}
	for _, name := range append(codecs(), baseline) {
		all = append(all, harness.Figure{Name: "kafka." + name + "_rss_mib", Value: m.results.Median(name, harness.Measured.PeakMiB), Unit: "MiB"})
	}
	return all
}
