package telemetry

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

func streams() []change.Stream {
	return []change.Stream{
		{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}},
		{Resource: change.Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}},
	}
}

func quiet() *Telemetry {
	return New(Options{
		Streams: streams(), Sinks: []string{"bus"}, Logger: slog.New(slog.DiscardHandler),
		CountObjects: func(string, change.Stream) (int, error) { return 0, nil },
	})
}

// standing says of streams since when the oldest record waits for the sink; zero is that none does.
func standing(oldest map[string]time.Time) func() *listener.Views {
	views := &listener.Views{Streams: map[string][]listener.View{}}
	for name, since := range oldest {
		views.Streams[name] = []listener.View{{Sink: "bus", Version: "100", Moved: time.Now(), Oldest: since}}
	}
	return func() *listener.Views { return views }
}

// course is what the pipeline tells of so many records, in batches of two streams by turns.
func course(t *Telemetry, records []*change.Record) {
	for _, rec := range records {
		t.Received(rec)
	}
	t.Written("bus", records, time.Millisecond)
	t.Committed(time.Millisecond)
}

func records(n int) []*change.Record {
	both := streams()
	var all []*change.Record
	for i := range n {
		all = append(all, &change.Record{
			Stream: &both[i/3%2], Op: change.Added + change.Op(i%2), Object: []byte("{}"), Received: time.Now(),
			ResourceVersion: "7",
		})
	}
	return all
}

// TestRecordsAreCountedByResource reads the counters as Prometheus does.
func TestRecordsAreCountedByResource(t *testing.T) {
	telemetry := quiet()
	course(telemetry, records(9))
	_, body := get(telemetry, "/metrics")
	for _, want := range []string{
		`kubecdc_source_records_total{op="added",resource="pods"} 4`,
		`kubecdc_source_records_total{op="updated",resource="pods"} 2`,
		`kubecdc_source_records_total{op="added",resource="deployments.apps"} 1`,
		`kubecdc_source_records_total{op="updated",resource="deployments.apps"} 2`,
		`kubecdc_source_bytes_total{resource="pods"} 12`,
		`kubecdc_sink_records_total{resource="pods",sink="bus"} 6`,
		`kubecdc_sink_records_total{resource="deployments.apps",sink="bus"} 3`,
		`kubecdc_delivery_seconds_count{sink="bus"} 9`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func BenchmarkRecord(b *testing.B) {
	telemetry, batch := quiet(), records(1000)
	b.ReportAllocs()
	for b.Loop() {
		course(telemetry, batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch)), "ns/record")
}
