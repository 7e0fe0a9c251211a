// Command snapshot measures the first snapshot of many objects: the exporter's binary lists them from a replay server
// into a file, beside a client that reads and discards the same pages.
//
// The figures are objects per second of CPU time, of the exporter from its start to its end, and its peak RSS, which
// must not grow with the number of objects.
package main

import (
	"time"

	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/bench/rig"
)

func main() {
	m := match{rss: map[int][]float64{}}
	rig.Main(harness.Benchmark{Name: "snapshot", Limit: time.Hour, Flags: m.flags, Roles: map[string]harness.Role{"copy": copyRole}}, m.run)
}
