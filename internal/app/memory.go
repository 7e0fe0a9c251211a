package app

import (
	"os"
	"runtime/debug"

	"github.com/kubecdc/kubecdc/internal/config"
)

// besideQueues is what the process needs beside full queues, in bytes, with room for the collector to be lazy in.
const besideQueues = 80 << 20

// limitMemory sets a soft limit at which the garbage collector works harder, for when queues are full (I6). They hold
// as many bytes, so the limit is never below what is in use. GOMEMLIMIT in the environment wins.
func limitMemory(cfg *config.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(besideQueues)
	for i := range cfg.Sinks {
		limit += int64(cfg.Sinks[i].Queue.Bytes)
	}
	debug.SetMemoryLimit(limit)
}
