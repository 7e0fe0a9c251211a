// Command patch measures what status updates of Pods of 12 KiB are as patches, beside whole objects: how many bytes,
// and how many a second of CPU time makes into batches of Kafka, compressed and not. In each update a container becomes
// ready, or is not any more, as a kubelet says that. All times are CPU time of the whole process, its garbage collector
// with it.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/listener/chain"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

const (
	rounds    = 3       // of which the median counts
	span      = "500ms" // of one
	batchSize = 300     // updates, of as many Pods
	smaller   = 15      // how many times a patch has to be, at least
	uid       = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"
)

func main() { harness.Main(harness.Benchmark{Name: "patch", Limit: time.Hour, Run: run}) }

func run(ctx context.Context) ([]harness.Figure, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", span); err != nil {
		return nil, fmt.Errorf("set how long a round is: %w", err)
	}
	var figures []harness.Figure
	for _, codec := range []batch.Codec{batch.None, batch.Zstd} {
		whole, err := newUpdates(ctx, false, codec)
		if err != nil {
			return nil, err
		}
		patches, err := newUpdates(ctx, true, codec)
		if err != nil {
			return nil, err
		}
		if figures, err = compare(ctx, figures, whole, patches); err != nil {
			return nil, err
		}
	}
	return figures, harness.AtLeast(figures[0].Name, figures[0].Value, smaller)
}

// updates make one batch after the other.
type updates struct {
	chain   *chain.Chain // nil leaves them whole
	encoder *encode.Encoder
	batch   *batch.Encoder
	objects [2][][]byte // by Pod: as it is in even and in odd batches
	version int
	made    []sink.Message
	packed  []byte
	codec   batch.Codec
}

func newUpdates(ctx context.Context, patches bool, codec batch.Codec) (*updates, error) {
	u := &updates{version: 1_000_000_000, codec: codec}
	if patches {
		u.chain = chain.New()
	}
	topic, err := encode.NewTopic("k8s.{cluster}.{resource}", "bench")
	if err != nil {
		return nil, err
	}
	u.encoder = encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid, Transport: encode.Kafka, Destination: topic})
	u.batch = batch.NewEncoder(codec)
	for i := range batchSize {
		ready := pod(i)
		unready := bytes.ReplaceAll(ready, []byte(`"ready":true,"restartCount":0,"image":"registry`), []byte(`"ready":false,"restartCount":0,"image":"registry`))
		for _, condition := range []string{"Ready", "ContainersReady"} {
			was := []byte(`"type":"` + condition + `","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T00:00:12Z"`)
			is := []byte(`"type":"` + condition + `","status":"False","lastProbeTime":null,"lastTransitionTime":"2026-11-20T00:07:31Z"`)
			unready = bytes.ReplaceAll(unready, was, is)
		}
		u.objects[0], u.objects[1] = append(u.objects[0], ready), append(u.objects[1], unready)
	}
	_, err = u.next(ctx) // the first of each are whole
	return u, err
}

// version is what stands in an object as its version. All have as many digits.
const version = "1000000001"

func pod(i int) []byte {
	name := fmt.Sprintf("web-7d4b9c6f5-%07d", i)
	return []byte(strings.TrimSpace(strings.NewReplacer("__NAME__", name, "__UID__", fmt.Sprintf("%s-%d", uid[:30], i), "__RV__", version).Replace(bench.PodTemplate())))
}

// record is the next one of the Pod.
func (u *updates) record(i int) *change.Record {
	now, before := u.objects[u.version%2][i], u.objects[(u.version+1)%2][i]
	text := strconv.Itoa(u.version)
	put(now, text)
	put(before, strconv.Itoa(u.version-1))
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}, Op: change.Updated,
		Key: change.Key{Namespace: "default", Name: fmt.Sprintf("web-7d4b9c6f5-%07d", i)}, UID: fmt.Sprintf("%s-%d", uid[:30], i),
		ResourceVersion: text, Object: now, Before: before, Received: time.Now(),
	}
}

// put writes the version into the object, in its place.
func put(object []byte, text string) {
	at := bytes.Index(object, []byte(`"resourceVersion":"`)) + len(`"resourceVersion":"`)
	copy(object[at:], text)
}

// sizes are those of a batch, in bytes: what its updates say, whole or as patches, its messages' values, and what goes
// over the wire.
type sizes struct{ content, values, wire int }

// next makes a batch of an update of each Pod.
func (u *updates) next(ctx context.Context) (size sizes, err error) {
	u.version++
	u.encoder.Reset()
	u.made = u.made[:0]
	if u.chain != nil {
		u.chain.Begin()
	}
	for i := range batchSize {
		rec := u.record(i)
		if u.chain != nil {
			rec = u.chain.Next(rec)
		}
		if rec.Patch != nil {
			size.content += len(rec.Patch)
		} else {
			size.content += len(rec.Object)
		}
		rec = withoutBefore(rec)
		if u.made, err = u.encoder.Encode(ctx, u.made, rec); err != nil {
			return size, err
		}
	}
	if u.chain != nil {
		u.chain.Wrote(batchSize)
	}
	u.batch.Reset()
	for i := range u.made {
		m := &u.made[i]
		size.values += len(m.Value)
		u.batch.Add(&batch.Record{Key: m.Key, Value: m.Value, Timestamp: m.Time.UnixMilli()})
	}
	u.packed = u.batch.Finish(u.packed, batch.Producer{})
	size.wire = len(u.packed)
	return size, nil
}

// withoutBefore is a whole update as a sink is given it whose objects are not kept: a patch is measured by that.
func withoutBefore(rec *change.Record) *change.Record {
	bare := *rec
	bare.Before = nil
	return &bare
}

// compare measures both, and appends what they are.
func compare(ctx context.Context, figures []harness.Figure, whole, patches *updates) ([]harness.Figure, error) {
	large, err := whole.next(ctx)
	if err != nil {
		return nil, err
	}
	small, err := patches.next(ctx)
	if err != nil {
		return nil, err
	}
	suffix := "_" + batch.Codecs()[whole.codec]
	if whole.codec == batch.None {
		suffix = ""
		figures = append(figures,
			harness.Figure{Name: "patch.bytes_ratio", Value: float64(large.content) / float64(small.content), Unit: "times"},
			harness.Figure{Name: "patch.message_bytes_ratio", Value: float64(large.values) / float64(small.values), Unit: "times"},
			harness.Figure{Name: "patch.bytes", Value: float64(small.content) / batchSize, Unit: "bytes"},
		)
	}
	figures = append(figures, harness.Figure{Name: "patch.batch_bytes_ratio" + suffix, Value: float64(large.wire) / float64(small.wire), Unit: "times"})
	var rates [2][]float64
	for range rounds {
		for i, u := range []*updates{patches, whole} {
			rates[i] = append(rates[i], u.rate(ctx))
		}
	}
	return append(figures,
		harness.Figure{Name: "patch.events_per_cpu_second" + suffix, Value: harness.Median(rates[0]), Unit: "events/s"},
		harness.Figure{Name: "patch.whole_events_per_cpu_second" + suffix, Value: harness.Median(rates[1]), Unit: "events/s"},
	), nil
}

// rate is how many events a second of CPU time makes into batches.
func (u *updates) rate(ctx context.Context) float64 {
	cost, _ := harness.Cost(func(b testing.TB, n int) {
		for done := 0; done < n; done += batchSize {
			if _, err := u.next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	return 1e9 / cost
}
