// Command nats measures the whole line into a real nats-server with its stream on disk: the exporter's binary brings
// the changes of 8 KiB Pods from a watch into JetStream, its state saved, by fast ingest and, as on older servers, with
// one acknowledgement a message. Beside it, on the same bytes, runs what can not be beaten, a client that reads and
// discards them. The sink alone runs with its own outbox, and with the client library in its place. The CPU time is
// that of the client's process; that of the server stands beside it.
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
)

func main() {
	os.Exit(harness.Main(map[string]harness.Role{
		rig.ServeRole: rig.Serve, reader: client.Measure(client.Copy),
		outbox: client.Measure(writer()), library: client.Measure(writer(viaLibrary())),
	}, run))
}

func run(ctx context.Context, args []string) (err error) {
	var m match
	flags := flag.NewFlagSet("nats", flag.ExitOnError)
	rounds := flags.Int("rounds", 5, "how often each client runs; the figures are medians")
	flags.IntVar(&m.events, "events", 60_000, "how many events the exporter is sent in a round; the copy is sent twice as many")
	flags.IntVar(&m.size, "size", 8<<10, "about how many bytes an object has")
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if m.rig, err = rig.New(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.rig.Close()) }()
	if m.server, err = harness.StartNATS(ctx, m.rig.Dir); err != nil {
		return err
	}
	defer m.server.Kill()
	for i := range *rounds {
		if err := m.round(ctx, i); err != nil {
			return err
		}
	}
	return harness.Print(os.Stdout, m.figures())
}
