// Command file measures the whole line: the exporter's binary brings the changes of 12 KiB Pods from a watch into a
// file, durable and with its state saved, beside a client that reads the same bytes over HTTP/1.1 and discards them,
// and beside itself with rules, and with records of what is resolved.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var m match
	rig.Main(harness.Benchmark{
		Name: "file", Limit: 5 * time.Minute, Flags: m.flags, Roles: map[string]harness.Role{"copy": client.Measure(client.Copy)},
	}, m.run)
}

// match is the results so far.
type match struct {
	min, minRules  float64
	rounds, events int
	files          rig.Profiles

	rig     *rig.Rig
	results harness.Results
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.Float64Var(&m.min, "min", 0, "fail below this ratio of the exporter to reading and discarding")
	flags.Float64Var(&m.minRules, "min-rules", 0, "fail below this ratio of the exporter with rules to the one without")
	flags.IntVar(&m.rounds, "rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&m.events, "events", 60_000, "how many events the exporter is sent in a round; the copy is sent twice as many")
	m.files.Flags(flags)
}

func (m *match) run(ctx context.Context, r *rig.Rig) ([]harness.Figure, error) {
	if m.files.CPU != "" {
		return nil, r.Profile(ctx, replay.World{Run: "inside", Events: 4 * m.events}, 4*m.events+2, m.files)
	}
	m.rig = r
	for i := range m.rounds {
		if err := m.round(ctx, i); err != nil {
			return nil, err
		}
	}
	return m.figures(), errors.Join(
		harness.AtLeast("file.ratio_to_copy_http1", m.results.Ratio("exporter", "copy"), m.min),
		harness.AtLeast("file.rules_ratio", m.results.Ratio("with rules", "exporter"), m.minRules))
}

// rules let every event pass, after a look at each: a filter on a status field, a cut, and hidden variables.
const rules = `filter: 'object.status.phase == "Running"', drop: [.spec.tolerations], redactEnv: ["*PASSWORD*", "*TOKEN*"]`

func (m *match) round(ctx context.Context, i int) error {
	limit := client.Spec{CA: m.rig.Address.CA, Events: 2 * m.events}
	limit.Host = m.rig.Address.Host(replay.World{Run: fmt.Sprint("copy", i), Events: limit.Events})
	var copied harness.Measured
	if err := harness.Call(ctx, "copy", limit, &copied); err != nil {
		return err
	}
	m.results.Note("copy", copied)
	measured, err := m.rig.Flow(ctx, replay.World{Run: fmt.Sprint("file", i), Events: m.events})
	if err != nil {
		return fmt.Errorf("run the exporter: %w", err)
	}
	m.results.Note("exporter", measured)
	for _, with := range []struct{ what, rules, keys string }{
		{"with rules", rules, ""}, {"with resolved", "", "resolved: {every: 1s}"}, {"with digests", "", "resolved: {every: 1s, digest: true}"},
	} {
		world := replay.World{Run: strings.ReplaceAll(fmt.Sprint(with.what, i), " ", "-"), Events: m.events}
		measured, err := m.rig.FlowBy(ctx, world, with.rules, with.keys)
		if err != nil {
			return fmt.Errorf("run the exporter %s: %w", with.what, err)
		}
		m.results.Note(with.what, measured)
	}
	return nil
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	r := &m.results
	return []harness.Figure{
		{Name: "file.events_per_cpu_second", Value: r.Median("exporter", harness.Measured.PerCPUSecond), Unit: "events/s"},
		{Name: "file.copy_http1_events_per_cpu_second", Value: r.Median("copy", harness.Measured.PerCPUSecond), Unit: "events/s"},
		{Name: "file.ratio_to_copy_http1", Value: r.Ratio("exporter", "copy"), Unit: "ratio"},
		{Name: "file.rules_events_per_cpu_second", Value: r.Median("with rules", harness.Measured.PerCPUSecond), Unit: "events/s"},
		{Name: "file.rules_ratio", Value: r.Ratio("with rules", "exporter"), Unit: "ratio"},
		{Name: "file.resolved_ratio", Value: r.Ratio("with resolved", "exporter"), Unit: "ratio"},
		{Name: "file.digest_ratio", Value: r.Ratio("with digests", "exporter"), Unit: "ratio"},
		{Name: "file.rss_mib", Value: r.Median("exporter", harness.Measured.PeakMiB), Unit: "MiB"},
	}
}
