package pipeline

import (
	"os"
	"runtime/debug"
)

// besideQueues is what the process needs beside full queues, in bytes, with room for the collector to be lazy in.
const besideQueues = 80 << 20

// TuneCollector sets a soft limit at which the garbage collector works harder, for when queues are full (I6). They hold as
// many bytes, so the limit is never below what is in use. Below it Go's own pace is right: collecting less often costs
// memory, and saves no CPU that could be measured. GOMEMLIMIT in the environment wins.
func TuneCollector(queues int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(besideQueues + int64(queues))
	}
}
