package pipeline

import (
	"os"
	"runtime/debug"
)

// TuneCollector sets a soft limit at which the garbage collector works harder, for when queues are full (I6). Below it
// Go's own pace is right: collecting less often costs memory, and saves no CPU that could be measured. GOMEMLIMIT in the
// environment wins.
func TuneCollector() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20)
	}
}
