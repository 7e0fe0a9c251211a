package harness

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Usage is what a process has used.
type Usage struct {
	CPU     time.Duration // user and system, in hundredths of a second while it runs
	PeakRSS int64         // bytes
	RSS     int64         // bytes, now
}

// clockTick is the unit of the times in /proc, the same on every Linux that Go knows.
const clockTick = 10 * time.Millisecond

// UsageOf reads what the process has used.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read what process %d used: %w", pid, err)
	}
	// The name, in parentheses, may hold anything. The 12th and 13th field after it are the times.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int64
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("read what process %d used: %q", pid, stat)
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return Usage{}, fmt.Errorf("read what process %d used: %w", pid, err)
	}
	u := Usage{CPU: time.Duration(user+system) * clockTick}
	if u.PeakRSS, err = memory(pid, "VmHWM:"); err != nil {
		return Usage{}, err
	}
	u.RSS, err = memory(pid, "VmRSS:")
	return u, err
}

// memory reads a size of the process, in bytes. Its high-water mark VmHWM is its own; the maxrss of getrusage would
// begin with that of the parent.
func memory(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kib << 10, nil
}
