package kafka

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4WhatIsResolvedIsBehindAllThatCameBefore: in each partition of a topic, and in a topic of frames by the offsets
// that it names of the topic of the objects.
func TestI4WhatIsResolvedIsBehindAllThatCameBefore(t *testing.T) {
	const partitions, before, after = 3, 40, 5
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		cluster := broker.Get(t)
		table, frames := options.Topics[0], options.Topics[0]+"_frames"
		options.Topics, options.Partitions = append(options.Topics, frames), partitions
		s := opened(t, options)
		var batch []sink.Message
		object := func(i int) {
			batch = append(batch, message(table, fmt.Sprint("shop/web-", i), fmt.Sprintf("0a1b2c3d/pods/shop/web-%d/u/%d/updated", i, i)))
		}
		for i := range before {
			object(i)
		}
		for _, topic := range []string{table, frames} {
			m := message(topic, "/resolved", "0a1b2c3d/pods////9/resolved/9.1")
			m.Op = isResolved
			batch = append(batch, m)
		}
		for i := range after {
			object(before + i)
		}
		mustWrite(t, s, batch)
		header := func(r *kafkatest.Record, name string) (value string) {
			for _, h := range r.Headers {
				if h.Key == name {
					value = string(h.Value)
				}
			}
			return value
		}
		offsets := map[string][]int64{}
		aside := committed(t, cluster, frames)
		for _, r := range aside {
			must(t, json.Unmarshal([]byte(header(&r, headerOffsets)), &offsets))
		}
		if len(aside) != partitions || len(offsets[table]) != partitions {
			t.Fatalf("the topic of frames has %d records, which name the offsets %v", len(aside), offsets)
		}
		resolved, objects := map[int]int64{}, 0
		for _, r := range committed(t, cluster, table) {
			if header(&r, sink.HeaderOp) == isResolved {
				resolved[r.Partition] = r.Offset
				continue
			}
			var i int
			if _, err := fmt.Sscanf(string(r.Key), "shop/web-%d", &i); err != nil {
				t.Fatal(err)
			}
			objects++
			if at, is := resolved[r.Partition]; is != (i >= before) {
				t.Errorf("object %d of partition %d is at offset %d, and what is resolved at %d", i, r.Partition, r.Offset, at)
			}
			if i < before && r.Offset >= offsets[table][r.Partition] {
				t.Errorf("object %d of partition %d is at offset %d, and the frames name %v", i, r.Partition, r.Offset, offsets)
			}
		}
		if len(resolved) != partitions || objects != before+after {
			t.Errorf("%d partitions have what is resolved, and all %d objects", len(resolved), objects)
		}
	})
}
