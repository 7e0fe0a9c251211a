package file

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// BenchmarkWrite is one full batch of a line under load: 2,000 events of 2 KiB. Most of the time is the disk's fsync,
// so the CPU time counts.
func BenchmarkWrite(b *testing.B) {
	s := New(Options{Path: b.TempDir() + "/changes.ndjson"})
	openAt(b, s, "")
	defer s.Close(b.Context())
	batch := make([]sink.Message, 2000)
	for i := range batch {
		batch[i].Value = bytes.Repeat([]byte{'x'}, 2048)
	}
	b.SetBytes(2000 * 2049)
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		if _, err := s.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/2000, "cpu-ns/event")
}

// cpuTime is what the process has used so far, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkIDOf is what reading back costs for one line with its id in front.
func BenchmarkIDOf(b *testing.B) {
	line := append([]byte(`{"specversion":"1.0","id":"0a1b2c3d/pods/shop/web/u/17/updated","data":"`),
		bytes.Repeat([]byte{'x'}, 12<<10)...)
	line = append(line, `"}`...)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if idOf(line) == "" {
			b.Fatal("no id")
		}
	}
}
