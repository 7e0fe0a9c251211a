// Command patch measures what status updates of Pods of 12 KiB are as patches, beside whole objects: how many bytes,
// and how many a second of CPU time makes into batches of Kafka, compressed and not. In each update a container becomes
// ready, or is not any more, as a kubelet says that. All times are CPU time of the whole process, its garbage collector
// with it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
	rounds    = 3   // of which the median counts
	batches   = 100 // of a round
	batchSize = 300 // updates, of as many Pods
	uid       = "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"
)

func main() { harness.Main(harness.Benchmark{Name: "patch", Limit: time.Hour, Run: run}) }

func run(ctx context.Context) (figures []harness.Figure, err error) {
	results, sizes := harness.Results{}, map[string]int{}
	for range rounds {
		for suffix, codec := range map[string]batch.Codec{"": batch.None, "_zstd": batch.Zstd} {
			for kind, patches := range map[string]*chain.Chain{"": chain.New(), "whole_": nil} {
				name := kind + "events_per_cpu_second" + suffix
				measured, size, err := measure(ctx, patches, codec)
				if err != nil {
					return nil, err
				}
				results.Note(name, measured)
				sizes[name] = size
			}
		}
	}
	for _, suffix := range []string{"", "_zstd"} {
		rate := "events_per_cpu_second" + suffix
		ratio := float64(sizes["whole_"+rate]) / float64(sizes[rate])
		figures = append(figures, harness.Figure{Name: "patch.batch_bytes_ratio" + suffix, Value: ratio, Unit: "times"})
		for _, name := range []string{rate, "whole_" + rate} {
			value := results.Median(name, harness.Measured.PerCPUSecond)
			figures = append(figures, harness.Figure{Name: "patch." + name, Value: value, Unit: "events/s"})
		}
	}
	return figures, nil
}

// measure makes batches, and returns what they cost and the size of one on the wire.
func measure(ctx context.Context, patches *chain.Chain, codec batch.Codec) (m harness.Measured, size int, err error) {
	u, err := newUpdates(patches, codec)
	if err != nil {
		return m, 0, err
	}
	if err := u.next(ctx); err != nil { // the first of each are whole
		return m, 0, err
	}
	before, err := harness.UsageOf(os.Getpid())
	if err != nil {
		return m, 0, err
	}
	for range batches {
		if err := u.next(ctx); err != nil {
			return m, 0, err
		}
	}
	after, err := harness.UsageOf(os.Getpid())
	return harness.Measured{Events: batches * batchSize, CPU: after.CPU - before.CPU, Peak: after.PeakRSS}, len(u.packed), err
}

// updates make one batch after the other.
type updates struct {
	chain   *chain.Chain // nil leaves them whole
	encoder *encode.Encoder
	batch   *batch.Encoder
	objects [2][][]byte // by Pod: as it is in even and in odd batches
	version int         // all have as many digits
	made    []sink.Message
	packed  []byte
}

func newUpdates(patches *chain.Chain, codec batch.Codec) (*updates, error) {
	topic, err := encode.NewTopic("k8s.{cluster}.{resource}", "bench")
	if err != nil {
		return nil, err
	}
	u := &updates{
		version: 1_000_000_000, chain: patches, batch: batch.NewEncoder(codec),
		encoder: encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: uid, Transport: encode.Kafka, Destination: topic}),
	}
	const condition = `","status":"%s","lastProbeTime":null,"lastTransitionTime":"2026-11-20T00:%s"`
	ready, unready := fmt.Sprintf(condition, "True", "00:12Z"), fmt.Sprintf(condition, "False", "07:31Z")
	become := strings.NewReplacer(`"ready":true,"restartCount":0,"image":"registry`, `"ready":false,"restartCount":0,"image":"registry`,
		`"type":"Ready`+ready, `"type":"Ready`+unready, `"type":"ContainersReady`+ready, `"type":"ContainersReady`+unready)
	for i := range batchSize {
		pod := strings.NewReplacer("__NAME__", name(i), "__UID__", uidOf(i), "__RV__", strconv.Itoa(u.version)).Replace(bench.PodTemplate())
		pod = strings.TrimSpace(pod)
		u.objects[0], u.objects[1] = append(u.objects[0], []byte(pod)), append(u.objects[1], []byte(become.Replace(pod)))
	}
	return u, nil
}

func name(i int) string { return fmt.Sprintf("web-7d4b9c6f5-%07d", i) }

func uidOf(i int) string { return fmt.Sprintf("%s-%d", uid[:30], i) }

// record is the next one of the Pod.
func (u *updates) record(i int) *change.Record {
	now, before := u.objects[u.version%2][i], u.objects[(u.version+1)%2][i]
	text := strconv.Itoa(u.version)
	put(now, text)
	put(before, strconv.Itoa(u.version-1))
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}, Op: change.Updated,
		Key: change.Key{Namespace: "default", Name: name(i)}, UID: uidOf(i),
		ResourceVersion: text, Object: now, Before: before, Received: time.Now(),
	}
}

// put writes the version into the object, in its place.
func put(object []byte, text string) {
	at := bytes.Index(object, []byte(`"resourceVersion":"`)) + len(`"resourceVersion":"`)
	copy(object[at:], text)
}

// next makes a batch of an update of each Pod.
func (u *updates) next(ctx context.Context) (err error) {
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
		bare := *rec // as a sink is given it whose objects are not kept: a patch is measured by that
		bare.Before = nil
		if u.made, err = u.encoder.Encode(ctx, u.made, &bare); err != nil {
			return err
		}
	}
	if u.chain != nil {
		u.chain.Wrote(batchSize)
	}
	u.batch.Reset()
	for i := range u.made {
		m := &u.made[i]
		u.batch.Add(&batch.Record{Key: m.Key, Value: m.Value, Timestamp: m.Time.UnixMilli()})
	}
	u.packed = u.batch.Finish(u.packed, batch.Producer{})
	return nil
}
