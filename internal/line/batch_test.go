package line

import (
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI6BatchesOfLargeObjectsAreSmall: what is kept of the objects bounds a batch as the number of records does.
func TestI6BatchesOfLargeObjectsAreSmall(t *testing.T) {
	stream := pods()
	for _, c := range []struct {
		name    string
		sizes   []int
		batches []int
	}{
		{"four fill one", []int{4: checkpoint.MaxObjects / 4}, []int{5}},
		{"each a quarter", quarters(9), []int{4, 4, 1}},
		{"one that is larger than a batch is alone", append([]int{2 * checkpoint.MaxObjects}, quarters(2)...), []int{1, 2}},
		{"nothing is kept", make([]int, checkpoint.MaxRecords+1), []int{checkpoint.MaxRecords, 1}},
	} {
		made := collector{}
		for i, size := range c.sizes {
			rec := &change.Record{Stream: &stream, Op: change.Added, Key: change.Key{Name: strconv.Itoa(i)}, UID: "u", ResourceVersion: "1"}
			if size > 0 {
				rec.Keep, rec.Object = true, make([]byte, size)
			}
			made.give(rec, 0)
		}
		if len(made.batches) != len(c.batches) {
			t.Errorf("%s: %d batches, want %v", c.name, len(made.batches), c.batches)
			continue
		}
		for i, p := range made.batches {
			if len(p.Records) != c.batches[i] {
				t.Errorf("%s: batch %d has %d records, want %d", c.name, i, len(p.Records), c.batches[i])
			}
		}
	}
}

func quarters(n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = checkpoint.MaxObjects / 4
	}
	return sizes
}
