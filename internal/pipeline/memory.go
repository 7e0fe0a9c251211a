package pipeline

import (
	"os"
	"runtime/debug"
)

// TuneCollector makes the garbage collector run less often: the line's live heap is a few megabytes and each record is
// garbage soon, so that Go's default would collect many times a second. The soft limit brings the usual pace back where
// queues are full (I6). GOGC and GOMEMLIMIT in the environment win.
func TuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20)
	}
}
