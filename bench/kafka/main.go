// Command kafka measures the whole line into a real Apache Kafka: the exporter's binary brings the changes of 12 KiB
// Pods from a watch into a topic of twelve partitions, idempotent, acks=all, its state saved. Beside it, on the same
// bytes, run what can not be beaten, a client that reads and discards them, and what is usual, an informer,
// json.Marshal and kafka-go's Writer. The CPU time is that of the client's process.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/rig"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// options are the command line's.
type options struct {
	rounds   int
	events   int
	baseline int
}

func main() {
	os.Exit(harness.Main(map[string]harness.Role{
		rig.ServeRole: rig.Serve, "copy": client.Measure(client.Copy), "baseline": client.Measure(runWriter),
	}, run))
}

func run(ctx context.Context, args []string) (err error) {
	var o options
	flags := flag.NewFlagSet("kafka", flag.ExitOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&o.events, "events", 60_000, "how many events the exporter is sent in a round; the copy is sent twice as many")
	flags.IntVar(&o.baseline, "baseline", 2_000, "how many events the informer is sent in a round")
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if err := kafka.Available(ctx); err != nil {
		return err
	}
	cluster, err := kafka.New(ctx, kafka.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	r, err := rig.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m := match{options: o, rig: r, brokers: cluster.Brokers()}
	for i := range o.rounds {
		if err := m.round(ctx, i); err != nil {
			return err
		}
	}
	return harness.Print(os.Stdout, m.figures())
}
