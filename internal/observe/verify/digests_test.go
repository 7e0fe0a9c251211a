package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// selfTold is a log of two partitions, or one with its frames aside, that says twice which objects it had.
func selfTold(t *testing.T, aside bool) (all []*sink.Stored) {
	t.Helper()
	encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: uid, Format: "debezium", Transport: encode.Kafka, FramesAside: aside})
	next := map[string]int64{} // offsets, by partition
	tell := func(rec *change.Record, partitions ...int32) {
		messages, err := encoder.Encode(t.Context(), nil, rec)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			for _, number := range partitions {
				stored := &sink.Stored{Place: fmt.Sprint("message ", len(all)), Destination: "pods", Partition: number, Key: m.Key, Headers: slices.Clone(m.Headers), Value: m.Value}
				stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderID, Value: m.ID})
				if m.Reason != "" && aside {
					offsets, err := json.Marshal(map[string][]int64{"pods": {next["0"], next["1"]}})
					if err != nil {
						t.Fatal(err)
					}
					stored.Destination += sink.FramesSuffix
					stored.Headers = append(stored.Headers, sink.Header{Name: sink.HeaderOffsets, Value: string(offsets)})
				} else {
					stored.Offset = next[fmt.Sprint(number)]
					next[fmt.Sprint(number)]++
				}
				all = append(all, stored)
			}
		}
	}
	var digest change.Digest
	object := func(op change.Op, name, version string, partition int32) {
		rec := record(op, name, version)
		if tell(rec, partition); op == change.Deleted {
			digest = digest.Minus(change.DigestOf(rec.Key, rec.UID, "1"))
		} else {
			digest = digest.Plus(change.DigestOf(rec.Key, rec.UID, version))
		}
	}
	resolved := func(at int64, of *change.Proof) {
		tell(&change.Record{Stream: pods(), Op: change.Resolved, ResourceVersion: fmt.Sprint(at), Received: time.UnixMilli(at), Remarks: &change.Remarks{Proof: of}}, 0, 1)
	}
	object(change.Added, "a", "1", 0)
	object(change.Added, "b", "2", 1)
	object(change.Added, "c", "3", 1)
	resolved(10, nil)
	first := &change.Proof{Digest: digest, Time: time.UnixMilli(10)}
	object(change.Deleted, "a", "11", 0)
	object(change.Added, "d", "12", 1)
	resolved(20, first)
	second := &change.Proof{Digest: digest, Time: time.UnixMilli(20)}
	object(change.Added, "e", "21", 0)
	resolved(30, second)
	return all
}

// TestI4ALogSaysWhetherItIsWhole: whichever record is taken out of it, a digest behind it is another one, but for what
// comes after the last.
func TestI4ALogSaysWhetherItIsWhole(t *testing.T) {
	for _, aside := range []bool{false, true} {
		whole := selfTold(t, aside)
		for out := -1; out < len(whole); out++ {
			d, isObject, last := NewDigests(), false, len(whole)
			for at, m := range whole {
				if id, err := change.ParseID(m.Header(sink.HeaderID)); err != nil {
					t.Fatal(err)
				} else if at == out {
					isObject = id.Op.OfObject() && m.Value != nil
					last = slices.IndexFunc(whole, func(m *sink.Stored) bool { return m.Header(sink.HeaderID) == whole[len(whole)-1].Header(sink.HeaderID) }) - 1
					continue
				}
				if err := d.Take(m); err != nil {
					t.Fatal(err)
				}
			}
			report := d.Report()
			switch found := len(report.Mismatch) > 0; {
			case out < 0 && (found || report.Digests != 2):
				t.Errorf("aside %t: of a whole log is said %+v", aside, report)
			case isObject && out < last && !found:
				t.Errorf("aside %t: without %s is said %+v", aside, whole[out].Header(sink.HeaderID), report)
			case !isObject && found:
				t.Errorf("aside %t: without the frame %s is said %+v", aside, whole[out].Header(sink.HeaderID), report)
			}
		}
	}
}
