package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/bench"
	"github.com/kubecdc/kubecdc/bench/harness"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
)

// As many records are in memory at a time as are in no processor's cache when their turn comes, and as many are
// written at once as the line takes of them.
const window, batchSize = 4096, 450

// own is the CPU time of encoding an event and appending it to a file, and of nothing else, in microseconds.
func (c *course) own(ctx context.Context, round int) (cost float64, err error) {
	path := filepath.Join(c.rig.Dir, fmt.Sprintf("own-%d.ndjson", round))
	log := file.New(file.Options{Path: path})
	if err := log.Open(ctx, sink.Opening{}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close(ctx), os.Remove(path)) }()
	records, encoder := fixture(), encode.NewEncoder(encode.Options{Cluster: "bench", ClusterUID: "8a5b1c3d-2e4f-4a6b-8c7d-9e0f1a2b3c4d"})
	ns, _ := harness.Cost(func(b testing.TB, n int) {
		var messages []sink.Message
		for i := range n {
			var err error
			if messages, err = encoder.Encode(ctx, messages, &records[i%window]); err != nil {
				b.Fatal(err)
			}
			if len(messages) < batchSize && i < n-1 {
				continue
			}
			if _, err := log.Write(ctx, messages); err != nil {
				b.Fatal(err)
			}
			encoder.Reset()
			messages = messages[:0]
		}
	})
	return ns / 1000, nil
}

// fixture is records of the Pods that the replay sends.
func fixture() []change.Record {
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
	records := make([]change.Record, window)
	for i := range records {
		name, uid, version := fmt.Sprintf("web-7d4b9c6f5-%07d", i), fmt.Sprintf("3f1c2b7a-0d4e-4a52-9c11-%012d", i), fmt.Sprint(1_000_000_000+i)
		pod := strings.NewReplacer("__NAME__", name, "__UID__", uid, "__RV__", version).Replace(bench.PodTemplate())
		records[i] = change.Record{
			Stream: stream, Op: change.Updated, Key: change.Key{Namespace: "default", Name: name}, UID: uid, ResourceVersion: version,
			Object: []byte(strings.TrimSpace(pod)), Received: time.Now(),
		}
	}
	return records
}
