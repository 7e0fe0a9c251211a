package fifo

import (
	"cmp"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Chunk is records that go to disk together, and are read as one batch.
type Chunk struct {
	Part    Part
	Number  uint64
	Records []*change.Record
	Value   []byte // what the store makes of them
	bytes   int    // of the records
}

// full says whether the chunk takes no further record.
func (c *Chunk) full(most Limit) bool {
	return c.bytes >= most.Bytes || len(c.Records) >= most.Records
}

// chunking are records that are to be in chunks.
type chunking []chunked

type chunked struct {
	rec   *change.Record
	part  Part
	order uint64 // of its place among those of the part
}

// sort puts the records in the order of their places: what has taken the place of a snapshot's record stays within the
// snapshot's frames.
func (c chunking) sort() {
	slices.SortStableFunc(c, func(a, b chunked) int { return cmp.Compare(a.order, b.order) })
}

// chunks puts the records in chunks of the part, each of which is one batch at most, with numbers from the next one on.
func (c chunking) chunks(part Part, next uint64, most Limit) (chunks []Chunk) {
	for _, one := range c {
		if one.part != part {
			continue
		}
		if len(chunks) == 0 || chunks[len(chunks)-1].full(most) {
			chunks = append(chunks, Chunk{Part: part, Number: next + uint64(len(chunks))})
		}
		last := &chunks[len(chunks)-1]
		last.Records = append(last.Records, one.rec)
		last.bytes += one.rec.Size()
	}
	return chunks
}
