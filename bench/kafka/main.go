// Command kafka measures the whole line into a real Apache Kafka: the exporter's binary brings the changes of 12 KiB
// Pods from a watch into a topic of twelve partitions, acks=all, idempotent and with transactions, its state saved.
// Beside it, on the same bytes, runs what is usual, an informer, json.Marshal and kafka-go's Writer. The CPU time is
// that of the client's process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/replay"
	"github.com/kubecdc/kubecdc/bench/rig"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// The contestants.
const (
	idempotent    = "snappy"
	transactional = "transactional"
	baseline      = "baseline"
)

// partitions is how many a topic has.
const partitions = 12

// match is what the command line asks for.
type match struct{ rounds, events, baseline int }

func main() {
	var m match
	rig.Main(harness.Benchmark{
		Name: "kafka", Limit: 15 * time.Minute, Flags: m.flags, Roles: map[string]harness.Role{baseline: runWriter},
	}, m.run)
}

func (m *match) flags(flags *flag.FlagSet) {
	flags.IntVar(&m.rounds, "rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&m.events, "events", 60_000, "how many events the exporter is sent in a round")
	flags.IntVar(&m.baseline, "baseline", 2_000, "how many events the informer is sent in a round")
}

func (m *match) run(ctx context.Context, r *rig.Rig) (figures []harness.Figure, err error) {
	if err := kafka.Available(ctx); err != nil {
		return nil, err
	}
	cluster, err := kafka.New(ctx, kafka.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	brokers, results := cluster.Brokers(), harness.Results{}
	for round := range m.rounds {
		measured, err := m.writer(ctx, r, brokers, round)
		if err != nil {
			return nil, fmt.Errorf("run the informer: %w", err)
		}
		results.Note(baseline, measured)
		for name, delivery := range map[string]string{idempotent: "idempotent", transactional: "transactional"} {
			w := replay.World{Run: fmt.Sprint(name, round), Events: m.events}
			const config = "resources: [pods]\nsinks: [{name: kafka, kafka: " +
				"{brokers: [%q], topic: %q, partitions: %d, delivery: %s, compression: snappy}}]\n"
			measured, err := r.Flow(ctx, w, fmt.Sprintf(config, brokers[0], w.Run, partitions, delivery))
			if err != nil {
				return nil, fmt.Errorf("run %s: %w", w.Run, err)
			}
			results.Note(name, measured)
		}
	}
	for _, name := range []string{idempotent, transactional, baseline} {
		figures = append(figures, results.Figures("kafka."+name+"_", name)...)
	}
	toBaseline, toIdempotent := results.Ratio(idempotent, baseline), results.Ratio(transactional, idempotent)
	return append(figures,
		harness.Figure{Name: "kafka.snappy_ratio_to_baseline", Value: toBaseline, Unit: "ratio"},
		harness.Figure{Name: "kafka.transactional_ratio_to_idempotent", Value: toIdempotent, Unit: "ratio"}), nil
}

// writer runs what is usual in a process of its own.
func (m *match) writer(ctx context.Context, r *rig.Rig, brokers []string, round int) (measured harness.Measured, err error) {
	w := replay.World{Run: fmt.Sprint(baseline, round), Events: m.baseline}
	spec, err := json.Marshal(writerSpec{
		Host: r.Address.Host(w), CA: r.Address.CA, Brokers: brokers, Topic: w.Run, Events: w.Events,
	})
	if err != nil {
		return measured, err
	}
	process, err := harness.Start(ctx, baseline, string(spec), &measured)
	if err == nil {
		process.Kill()
	}
	return measured, err
}
