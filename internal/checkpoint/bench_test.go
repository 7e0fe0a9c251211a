package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

const benchObjects = 100_000

// filled is a state with as many objects as the benchmarks work on.
func filled(b *testing.B) (*Store, *SinkState) {
	b.Helper()
	s := open(b, b.TempDir())
	for at := 0; at < benchObjects; at += MaxRecords {
		items := make([]Item, min(MaxRecords, benchObjects-at))
		for i := range items {
			items[i] = benchItem(at+i, at+i)
		}
		must(b, save(s, "out", "12", items...))
	}
	state, err := s.LoadSink("out")
	must(b, err)
	return s, state
}

func benchItem(i, version int) Item {
	return told("pods", "deployment-5d4f8c7b9d-"+strconv.Itoa(i), fmt.Sprintf("%08x-9dad-11d1-80b4-00c04fd430c8", i), 1e8+version)
}

// cpuTime is what the process has used so far, in nanoseconds. It includes Pebble's background work, and is the same on
// a busy machine as on an idle one.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkCommit is what a commit costs for each object: alone, or where it is kept, some 1.3 KB of JSON.
func BenchmarkCommit(b *testing.B) {
	for _, keep := range []bool{false, true} {
		b.Run(fmt.Sprintf("keep=%t", keep), func(b *testing.B) { benchCommit(b, keep) })
	}
}

func benchCommit(b *testing.B, keep bool) {
	s, state := filled(b)
	pool, texts := make([]Item, 20_000), make([][]byte, 20_000)
	for i := range pool {
		pool[i] = benchItem(rand.IntN(benchObjects), i)
		texts[i] = benchJSON(&pool[i])
	}
	cpu := cpuTime(b)
	for b.Loop() {
		var objects []KeptObject
		for range 1000 {
			at := rand.IntN(len(pool))
			i := &pool[at]
			must(b, state.Acked(i))
			if keep {
				objects = append(objects, KeptObject{"pods", i.Key, change.Image{UID: i.UID, Version: i.At.Version, Object: texts[at], Sinks: []string{state.Name}}})
			}
		}
		must(b, s.SaveSinks([]*SinkState{state}, Spools{}, &Keeping{objects, []string{state.Name}}))
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/1000, "cpu-ns/record")
}

// BenchmarkFindUID finds the object of the last row by its uid, which reads all of them.
func BenchmarkFindUID(b *testing.B) {
	s, _ := filled(b)
	cpu, uid := cpuTime(b), benchItem(benchObjects-1, 0).UID
	for b.Loop() {
		n := 0
		for _, err := range s.Select([]string{"out"}, "pods", "", func(o *SinkObject) bool { return o.UID == uid }) {
			must(b, err)
			n++
		}
		if n != 1 {
			b.Fatalf("%d objects, want 1", n)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/benchObjects, "cpu-ns/object")
}

// benchJSON is an object that compresses as a ConfigMap does.
func benchJSON(i *Item) []byte {
	text := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + i.Key.Name + `","uid":"` + i.UID + `","resourceVersion":"` + i.At.Version + `"},"data":{`)
	for n := range 30 {
		text = fmt.Appendf(text, `"setting-%d":"value-%x",`, n, rand.Uint64())
	}
	return append(text, `"last":""}}`...)
}
