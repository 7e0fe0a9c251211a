// Command source measures how cheaply internal/source turns a watch into records. Beside it, on the same bytes, run
// what can not be beaten, a client that reads and discards them, and what is usual, an informer and json.Marshal.
//
// Server and clients are processes of their own. The figures are events per second of the client's CPU time.
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
		Name: "source", Limit: time.Hour, Flags: m.flags,
		Roles: map[string]harness.Role{
			"copy": client.Measure(client.Copy), "source": client.Measure(runSource), "informer": client.Measure(runInformer),
		},
	}, m.measure)
}
