// Command kafka measures the whole line into a real Apache Kafka: the exporter's binary brings the changes of 12 KiB
// Pods from a watch into a topic of twelve partitions, idempotent, acks=all, its state saved. Beside it, on the same
// bytes, run what can not be beaten, a client that reads and discards them, and what is usual, an informer,
// json.Marshal and kafka-go's Writer. The CPU time is that of the client's process.
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
		Name: "kafka", Limit: 15 * time.Minute, Flags: m.flags,
		Roles: map[string]harness.Role{reader: client.Measure(client.Copy), baseline: client.Measure(runWriter)},
	}, m.run)
}
