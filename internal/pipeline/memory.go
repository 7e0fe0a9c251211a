package pipeline

import (
	"os"
	"runtime/debug"
)

// besideQueues is what the process needs beside full queues, in bytes, with room for the collector to be lazy in.
const besideQueues = 80 << 20

// TuneCollector sets a soft limit at which the garbage collector works harder, for when queues are full (I6). They hold
// as many bytes, so the limit is never below what is in use. Below it a busy process collects less often than it would
// by itself. GOMEMLIMIT and GOGC in the environment win.
func TuneCollector(queues int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(besideQueues + int64(queues))
	}
	if os.Getenv("GOGC") == "" {
		newPacer().await()
	}
}
