package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

const benchObjects = 100_000

// filled is a state with as many objects as the benchmarks work on.
func filled(b *testing.B) *Store {
	b.Helper()
	s := open(b, b.TempDir())
	for at := 0; at < benchObjects; at += 5000 {
		var batch Batch
		for i := at; i < at+5000; i++ {
			batch.Records = append(batch.Records, benchObject(i, i))
		}
		must(b, s.Commit(batch))
	}
	return s
}

func benchObject(i, version int) *change.Record {
	return object(change.Updated, "deployment-5d4f8c7b9d-"+strconv.Itoa(i), fmt.Sprintf("%08x-9dad-11d1-80b4-00c04fd430c8", i), strconv.Itoa(1e8+version))
}

// cpuTime is what the process has used so far, in nanoseconds. It includes Pebble's background work, and is the same on
// a busy machine as on an idle one.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func BenchmarkCommit(b *testing.B) {
	s := filled(b)
	batch := Batch{Records: make([]*change.Record, 1000), Marks: map[string]sink.Mark{"out": "12"}}
	pool := make([]*change.Record, 20_000)
	for i := range pool {
		pool[i] = benchObject(rand.IntN(benchObjects), i)
	}
	cpu := cpuTime(b)
	for b.Loop() {
		for i := range batch.Records {
			batch.Records[i] = pool[rand.IntN(len(pool))]
		}
		must(b, s.Commit(batch))
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/1000, "cpu-ns/record")
}

func BenchmarkScan(b *testing.B) {
	s := filled(b)
	cpu := cpuTime(b)
	for b.Loop() {
		n := 0
		for _, err := range s.Scan("pods", "") {
			must(b, err)
			n++
		}
		if n != benchObjects {
			b.Fatalf("%d objects, want %d", n, benchObjects)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/benchObjects, "cpu-ns/object")
}

// BenchmarkFindUID finds the object at the end of the inventory by its uid, which reads all of it.
func BenchmarkFindUID(b *testing.B) {
	s := filled(b)
	last := benchObject(benchObjects-1, 0)
	cpu := cpuTime(b)
	for b.Loop() {
		n := 0
		for _, err := range s.inventory.Select("pods", Filter{UID: last.UID}) {
			must(b, err)
			n++
		}
		if n != 1 {
			b.Fatalf("%d objects, want 1", n)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/benchObjects, "cpu-ns/object")
}

func BenchmarkLookup(b *testing.B) {
	s := filled(b)
	cpu := cpuTime(b)
	for b.Loop() {
		_, found, err := s.Lookup("pods", benchObject(rand.IntN(benchObjects), 0).Key)
		if must(b, err); !found {
			b.Fatal("an object is missing")
		}
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/lookup")
}

// BenchmarkCommitObjects is BenchmarkCommit where the objects are kept, each some 1.3 KB of JSON.
func BenchmarkCommitObjects(b *testing.B) {
	s := open(b, b.TempDir())
	pool := make([]*change.Record, 20_000)
	for i := range pool {
		pool[i] = benchObject(rand.IntN(benchObjects), i)
		pool[i].Keep, pool[i].Object = true, benchJSON(pool[i])
	}
	batch := Batch{Records: make([]*change.Record, 1000), Marks: map[string]sink.Mark{"out": "12"}}
	cpu := cpuTime(b)
	for b.Loop() {
		for i := range batch.Records {
			batch.Records[i] = pool[rand.IntN(len(pool))]
		}
		must(b, s.Commit(batch))
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/1000, "cpu-ns/record")
}

// benchJSON is an object that compresses as a ConfigMap does.
func benchJSON(rec *change.Record) []byte {
	text := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + rec.Key.Name + `","uid":"` + rec.UID + `","resourceVersion":"` + rec.ResourceVersion + `"},"data":{`)
	for i := range 30 {
		text = fmt.Appendf(text, `"setting-%d":"value-%x",`, i, rand.Uint64())
	}
	return append(text, `"last":""}}`...)
}
