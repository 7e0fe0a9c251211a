package harness

import (
	"syscall"
	"testing"
	"time"
)

// Cost returns the CPU time, in nanoseconds, and the allocations of one event. The time is the whole process's, its
// garbage collector's with it. The caller must have called testing.Init; events takes as many as it is told, and
// reports an error by b.Fatal.
func Cost(events func(b testing.TB, n int)) (cost, allocs float64) {
	var cpu time.Duration
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		began := cpuTime()
		events(b, b.N)
		cpu = cpuTime() - began
	})
	return float64(cpu.Nanoseconds()) / float64(result.N), float64(result.MemAllocs) / float64(result.N)
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // it can only fail for a bad argument
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
