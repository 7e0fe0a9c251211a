// Command file measures the whole line: the exporter's binary brings the changes of 12 KiB Pods from a watch into a
// file, durable and with its state saved, beside a client that reads the same bytes over HTTP/1.1 and discards them,
// and beside itself with rules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
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

	rig                           *rig.Rig
	exporter, copied, ratios, rss []float64
	ruled, rules                  []float64 // with rules, and as a share of those without
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
		harness.AtLeast("file.ratio_to_copy_http1", harness.Median(m.ratios), m.min),
		harness.AtLeast("file.rules_ratio", harness.Median(m.rules), m.minRules))
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
	tell("copy", copied)
	measured, err := m.rig.Flow(ctx, replay.World{Run: fmt.Sprint("file", i), Events: m.events})
	if err != nil {
		return fmt.Errorf("run the exporter: %w", err)
	}
	tell("exporter", measured)
	ruled, err := m.rig.FlowBy(ctx, replay.World{Run: fmt.Sprint("rules", i), Events: m.events}, rules)
	if err != nil {
		return fmt.Errorf("run the exporter with rules: %w", err)
	}
	tell("with rules", ruled)
	m.ruled = append(m.ruled, ruled.PerCPUSecond())
	m.rules = append(m.rules, ruled.PerCPUSecond()/measured.PerCPUSecond())
	m.exporter = append(m.exporter, measured.PerCPUSecond())
	m.copied = append(m.copied, copied.PerCPUSecond())
	m.ratios = append(m.ratios, measured.PerCPUSecond()/copied.PerCPUSecond())
	m.rss = append(m.rss, float64(measured.PeakRSS)/(1<<20))
	return nil
}

func tell(who string, m harness.Measured) {
	fmt.Fprintf(os.Stderr, "%-10s %7d events, %5.2f s, %5.2f s CPU, %7.0f events/CPU-s, %5.1f MiB\n",
		who, m.Events, m.Wall.Seconds(), m.CPU.Seconds(), m.PerCPUSecond(), float64(m.PeakRSS)/(1<<20))
}

// figures are the medians of the rounds.
func (m *match) figures() []harness.Figure {
	return []harness.Figure{
		{Name: "file.events_per_cpu_second", Value: harness.Median(m.exporter), Unit: "events/s"},
		{Name: "file.copy_http1_events_per_cpu_second", Value: harness.Median(m.copied), Unit: "events/s"},
		{Name: "file.ratio_to_copy_http1", Value: harness.Median(m.ratios), Unit: "ratio"},
		{Name: "file.rules_events_per_cpu_second", Value: harness.Median(m.ruled), Unit: "events/s"},
		{Name: "file.rules_ratio", Value: harness.Median(m.rules), Unit: "ratio"},
		{Name: "file.rss_mib", Value: harness.Median(m.rss), Unit: "MiB"},
	}
}
