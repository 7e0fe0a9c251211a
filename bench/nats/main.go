// Command nats measures the whole line into a real nats-server with its stream on disk: the exporter's binary brings
// the changes of 8 KiB Pods from a watch into JetStream, its state saved. Beside it, on the same bytes, runs what can
// not be beaten, a client that reads and discards them. The sink alone runs with its own outbox, and with the
// client library in its place. The CPU time is that of the client's process; that of the server stands beside it.
package main

import (
	"time"

	"github.com/kubecdc/kubecdc/bench/client"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	var m match
	rig.Main(harness.Benchmark{
		Name: "nats", Limit: 15 * time.Minute, Flags: m.flags,
		Roles: map[string]harness.Role{
			reader: client.Measure(client.Copy), outbox: client.Measure(writer()), library: client.Measure(writer(viaLibrary())),
		},
	}, m.run)
}
