// Command encode measures what an event costs in each format, without rules and with redaction and a filter, on the 12
// KiB Pod of the fixture, beside what an exporter pays that unmarshals the object and marshals it again. All times are
// CPU time of the whole process, its garbage collector with it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
)

const (
	rounds    = 3       // of which the median counts
	span      = "300ms" // of one; the shortest are of hundreds of events
	batchSize = 450     // messages between two resets of the encoder
	faster    = 4       // how many times than the round trip, and than a library's encoding, Avro has to be, at least
	cluster   = "bench"
	uid       = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"
)

func main() { harness.Main(harness.Benchmark{Name: "encode", Limit: time.Hour, Run: run}) }

func run(ctx context.Context) ([]harness.Figure, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", span); err != nil {
		return nil, fmt.Errorf("set how long a round is: %w", err)
	}
	all, err := contestants()
	if err != nil {
		return nil, err
	}
	more, err := typedContestants(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, more...)
	for range rounds {
		for i := range all {
			cost, allocs := harness.Cost(all[i].events)
			all[i].costs, all[i].allocs = append(all[i].costs, cost), append(all[i].allocs, allocs)
		}
	}
	beside, err := typedFigures(ctx, all)
	if err != nil {
		return nil, err
	}
	made := append(figures(all), beside...)
	for _, f := range made {
		if f.Name == "encode.debezium_avro_times_faster" || f.Name == beside[0].Name {
			err = errors.Join(err, harness.AtLeast(f.Name, f.Value, faster))
		}
	}
	return made, err
}

// contestant makes messages of events in its way.
type contestant struct {
	name          string
	events        func(b testing.TB, n int)
	costs, allocs []float64 // of the rounds
}

// contestants start with the one that the others are measured by.
func contestants() ([]contestant, error) {
	all := []contestant{{name: "roundtrip", events: roundTrip}}
	redact := transform.Rules{Redact: []string{".metadata.annotations"}, Env: []string{"*PASSWORD*", "*TOKEN*", "*SECRET*"}}
	for _, rules := range []struct {
		name    string
		options shape.Options
	}{
		{"", shape.Options{}},
		{"_redacted", shape.Options{Rules: redact}},
		{"_filtered", shape.Options{Filter: `object.status.phase == "Running"`}},
		{"_redacted_filtered", shape.Options{Rules: redact, Filter: `object.status.phase == "Running"`}},
	} {
		var failure error
		rules.options.Key, rules.options.Failed = transform.Key{Secret: []byte(uid)}, func(_ *change.Record, err error) { failure = err }
		s, err := shape.New(rules.options)
		if err != nil {
			return nil, err
		}
		for _, format := range []string{encode.FormatCloudEvents, encode.FormatCloudEventsBinary, encode.FormatDebezium, encode.FormatObject} {
			encoder, err := newEncoder(format, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, contestant{name: strings.ReplaceAll(format, "-", "_") + rules.name, events: func(b testing.TB, n int) {
				encodeAll(b, encoder, s, n)
				if failure != nil {
					b.Fatal(failure)
				}
			}})
		}
	}
	return all, nil
}

// newEncoder is one for Kafka, where every format has a key, and the binary one its headers.
func newEncoder(format string, schemas encode.Schemas) (*encode.Encoder, error) {
	topic, err := encode.NewTopic("k8s.{cluster}.{resource}", cluster)
	if err != nil {
		return nil, err
	}
	return encode.NewEncoder(encode.Options{
		Cluster: cluster, ClusterUID: uid, Version: "v1", Format: format, Transport: encode.Kafka, Destination: topic, Tombstones: true,
		Schemas: schemas,
	}), nil
}

func pod() []byte {
	return []byte(strings.TrimSpace(strings.NewReplacer("__NAME__", "web-7d4b9c6f5-0000001", "__UID__", uid, "__RV__", "1000000001").Replace(bench.PodTemplate())))
}

func encodeAll(b testing.TB, encoder *encode.Encoder, s *shape.Shape, n int) {
	object := pod()
	made := event(object)
	var messages []sink.Message
	var rec change.Record
	for i := range n {
		if i%batchSize == 0 {
			encoder.Reset()
			messages = messages[:0]
		}
		rec = made
		if s != nil {
			s.Apply(&rec)
		}
		var err error
		if messages, err = encoder.Encode(b.Context(), messages, &rec); err != nil {
			b.Fatal(err)
		}
	}
}

// event is an update of the Pod.
func event(object []byte) change.Record {
	return change.Record{
		Stream: &change.Stream{Resource: *pods()}, Op: change.Updated, Key: change.Key{Namespace: "default", Name: "web-7d4b9c6f5-0000001"}, UID: uid,
		ResourceVersion: "1000000001", Object: object, Received: time.Now(),
	}
}

// roundTrip is the round trip that every format is compared with: json.Unmarshal of the Pod, and json.Marshal of what
// that makes.
func roundTrip(b testing.TB, n int) {
	object := pod()
	for range n {
		var value any
		if err := json.Unmarshal(object, &value); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(value); err != nil {
			b.Fatal(err)
		}
	}
}

// figures are a contestant's time, how many times faster than the round trip that is, and its allocations.
func figures(all []contestant) []harness.Figure {
	var figures []harness.Figure
	for _, c := range all {
		name := fmt.Sprintf("encode.%s_", c.name)
		figures = append(figures, harness.Figure{Name: name + "ns_per_event", Value: harness.Median(c.costs), Unit: "ns"})
		if c.name != all[0].name {
			var ratios []float64
			for i, cost := range c.costs {
				ratios = append(ratios, all[0].costs[i]/cost)
			}
			figures = append(figures, harness.Figure{Name: name + "times_faster", Value: harness.Median(ratios), Unit: "times faster than encode.roundtrip"})
		}
		figures = append(figures, harness.Figure{Name: name + "allocs_per_event", Value: harness.Median(c.allocs), Unit: "allocs"})
	}
	return figures
}
