package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

// The contestants.
const (
	reader  = "copy"       // over HTTP/2
	reader1 = "copy_http1" // over HTTP/1.1
	line    = "exporter"
)

// stream is the one that is written to.
const stream = "BENCH"

// match is the results so far.
type match struct {
	rounds, events, size int

	rig     *rig.Rig
	server  *harness.NATS
	stream  *harness.Stream
	results harness.Results
	served  harness.Results // the same with the server's CPU time
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.rounds, "rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&m.events, "events", 60_000, "how many events the exporter is sent in a round; the copy is sent twice as many")
	flags.IntVar(&m.size, "size", 8<<10, "about how many bytes an object has")
}

func (m *match) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	m.rig = r
	if m.server, err = harness.StartNATS(ctx, r.Dir); err != nil {
		return nil, err
	}
	defer m.server.Kill()
	if m.stream, err = harness.OpenStream(m.server.URL, stream); err != nil {
		return nil, err
	}
	defer m.stream.Close()
	for i := range m.rounds {
		if err := m.round(ctx, i); err != nil {
			return nil, err
		}
	}
	return m.figures(), nil
}

// round runs each client once.
func (m *match) round(ctx context.Context, i int) error {
	for _, name := range []string{reader, reader1} {
		if err := m.copy(ctx, name, i); err != nil {
			return fmt.Errorf("run %s: %w", name, err)
		}
	}
	if err := m.exporter(ctx, i); err != nil {
		return fmt.Errorf("run the exporter: %w", err)
	}
	for _, role := range []string{outbox, library} {
		if err := m.send(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

func (m *match) copy(ctx context.Context, name string, i int) error {
	spec := client.Spec{CA: m.rig.Address.CA, Events: 2 * m.events, HTTP2: name == reader}
	spec.Host = m.rig.Address.Host(replay.World{Run: fmt.Sprint(name, i), Events: spec.Events, ObjectBytes: m.size})
	var measured harness.Measured
	if err := harness.Call(ctx, reader, spec, &measured); err != nil {
		return err
	}
	m.results.Note(name, measured)
	return nil
}

func (m *match) exporter(ctx context.Context, i int) (err error) {
	defer func() { err = errors.Join(err, m.stream.Remove(context.WithoutCancel(ctx))) }()
	before, err := m.server.Usage()
	if err != nil {
		return err
	}
	to := rig.Sink{
		Config: fmt.Sprintf("sinks: [{name: nats, nats: {url: %q, stream: %s}}]\n", m.server.URL, stream),
		Count:  m.stream.Count,
	}
	measured, err := m.rig.FlowTo(ctx, replay.World{Run: fmt.Sprint(line, i), Events: m.events, ObjectBytes: m.size}, to)
	if err != nil {
		return err
	}
	after, err := m.server.Usage()
	if err != nil {
		return err
	}
	m.results.Note(line, measured)
	measured.CPU, measured.PeakRSS = after.CPU-before.CPU, after.PeakRSS
	fmt.Fprint(os.Stderr, "  server of ")
	m.served.Note(line, measured)
	return nil
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	perSecond := harness.Measured.PerCPUSecond
	return []harness.Figure{
		{Name: "nats.events_per_cpu_second", Value: m.results.Median(line, perSecond), Unit: "events/s"},
		{Name: "nats.copy_events_per_cpu_second", Value: m.results.Median(reader, perSecond), Unit: "events/s"},
		{Name: "nats.copy_http1_events_per_cpu_second", Value: m.results.Median(reader1, perSecond), Unit: "events/s"},
		{Name: "nats.ratio_to_copy", Value: m.results.Ratio(line, reader), Unit: "ratio"},
		{Name: "nats.ratio_to_copy_http1", Value: m.results.Ratio(line, reader1), Unit: "ratio"},
		{Name: "nats.server_events_per_cpu_second", Value: m.served.Median(line, perSecond), Unit: "events/s"},
		{Name: "nats.outbox_messages_per_cpu_second", Value: m.results.Median(outbox, perSecond), Unit: "messages/s"},
		{Name: "nats.library_messages_per_cpu_second", Value: m.results.Median(library, perSecond), Unit: "messages/s"},
		{Name: "nats.outbox_ratio_to_library", Value: m.results.Ratio(outbox, library), Unit: "ratio"},
		{Name: "nats.rss_mib", Value: m.results.Median(line, harness.Measured.PeakMiB), Unit: "MiB"},
	}
}
