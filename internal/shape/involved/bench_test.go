package involved

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// benchPods is how many Pods of 12 KiB the state has, more than what its cache holds.
const benchPods = 20_000

// pods is the state of the benchmarks, and its stream.
func pods(b *testing.B) (*checkpoint.Store, *change.Stream) {
	b.Helper()
	store, err := checkpoint.Open(b.Context(), b.TempDir(), checkpoint.Options{Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	for at := 0; at < benchPods; at += 1000 {
		var kept []checkpoint.KeptObject
		for i := at; i < at+1000; i++ {
			rec := benchPod(stream, i)
			image := change.Image{UID: rec.UID, Version: rec.ResourceVersion, Object: rec.Object, Sinks: []string{"bus"}}
			kept = append(kept, checkpoint.KeptObject{Stream: stream.String(), Key: rec.Key, Image: image})
		}
		must(b, store.SaveSinks(nil, checkpoint.Spools{}, &checkpoint.Keeping{Objects: kept, Sinks: []string{"bus"}}))
	}
	return store, stream
}

func benchPod(stream *change.Stream, i int) *change.Record {
	name, uid := fmt.Sprintf("web-%07d", i), fmt.Sprintf("%08x-9dad-11d1-80b4-00c04fd430c8", i)
	text := strings.NewReplacer("__NAME__", name, "__UID__", uid, "__RV__", fmt.Sprint(1e6+i)).Replace(bench.PodTemplate())
	return &change.Record{
		Stream: stream, Op: change.Added, Key: change.Key{Namespace: "shop", Name: name}, UID: uid, ResourceVersion: fmt.Sprint(1e6 + i),
		Keep: true, Object: []byte(strings.TrimSpace(text)),
	}
}

// BenchmarkFind looks Pods up in a saved state, for Events that are about any of them, or again and again about one.
func BenchmarkFind(b *testing.B) {
	store, stream := pods(b)
	finder := &Finder{
		Objects: listener.NewImages(store), Fields: []string{"labels", "ownerReferences"},
		Streams: func(Kind) []*change.Stream { return []*change.Stream{stream} },
	}
	for name, objects := range map[string]int{"any": benchPods, "one": 1} {
		events := make([]*change.Record, min(objects, 1000))
		for i := range events {
			pod := benchPod(stream, rand.IntN(objects))
			events[i] = event(ref("v1", "Pod", "shop", pod.Key.Name, pod.UID))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			cpu := cpuTime(b)
			for b.Loop() {
				known, err := finder.Find(events[rand.IntN(len(events))])
				if err != nil || !strings.Contains(string(known), `"labels":{`) {
					b.Fatalf("known is %s, %v", known, err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/event")
		})
	}
}

// cpuTime is what the process has used so far, in nanoseconds, which is nearly the same on a busy machine.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}
