package line

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Batch is what one commit saves.
type Batch struct {
	Records []*change.Record
	Marks   map[string]sink.Mark
	Told    []checkpoint.Held // what listeners have told by themselves
	Chunks  []Chunk

	carried  map[string]carried // by sink: what its mark carries
	compared []string           // sinks whose log was compared with what is saved, as their mark says
	merged   []mergedRecord     // that are to be in chunks; none when the batch is made
	bytes    int                // of the chunks' records
	objects  int                // bytes of the objects that are kept
}

// Chunk is records that go to disk together.
type Chunk struct {
	Sink    string
	Part    fifo.Part
	Number  uint64
	Records []*change.Record
	bytes   int
}

func newBatch() *Batch { return &Batch{Marks: map[string]sink.Mark{}, carried: map[string]carried{}} }

// State is the batch as the state takes it, but for its chunks.
func (b *Batch) State() checkpoint.Batch {
	state := checkpoint.Batch{
		Records: b.Records, Marks: b.Marks, Held: b.Told, Compared: b.compared,
		Carried: map[string]checkpoint.Carried{}, Spools: map[string]fifo.Spool{},
	}
	for name, of := range b.carried {
		state.Carried[name] = of.state()
	}
	return state
}

// IsEmpty says whether there is nothing to save, but perhaps what was removed from spools.
func (b *Batch) IsEmpty() bool { return len(b.Records) == 0 && len(b.Marks) == 0 && len(b.Told) == 0 }

// maxSpooled is how many bytes of records one batch takes to disk: after compression a batch is then well below half a
// memtable, above which Pebble makes it a table of its own.
const maxSpooled = 4 << 20

// takes says whether the batch is small enough for one more record, of whose object so many bytes are kept.
func (b *Batch) takes(object int) bool {
	return len(b.Records) == 0 ||
		len(b.Records) < checkpoint.MaxRecords && b.bytes < maxSpooled && b.objects+object <= checkpoint.MaxObjects
}

// mergedRecord goes to disk out of a queue that coalesces.
type mergedRecord struct {
	rec   *change.Record
	sink  string
	part  fifo.Part
	order uint64 // of its place in the queue
}

// close puts what goes to disk out of queues that coalesce into chunks, in the order of the queues: what has taken the
// place of a snapshot's record stays within the snapshot's frames.
func (b *Batch) close() {
	slices.SortStableFunc(b.merged, func(a, b mergedRecord) int { return cmp.Compare(a.order, b.order) })
	for _, m := range b.merged {
		b.spool(m.sink, m.part, m.rec)
	}
	b.merged = nil
}

// spool puts the record into a chunk.
func (b *Batch) spool(sinkName string, part fifo.Part, rec *change.Record) {
	chunk := b.chunk(sinkName, part)
	chunk.Records = append(chunk.Records, rec)
	chunk.bytes += rec.Size()
}

// chunk is the one that takes the sink's next record. Each can be read as one batch for its sink.
func (b *Batch) chunk(sinkName string, part fifo.Part) *Chunk {
	most := BatchLimit()
	for i := range b.Chunks {
		chunk := &b.Chunks[len(b.Chunks)-1-i]
		if chunk.Sink == sinkName && chunk.Part == part {
			if len(chunk.Records) < most.Records && chunk.bytes < most.Bytes {
				return chunk
			}
			break
		}
	}
	b.Chunks = append(b.Chunks, Chunk{Sink: sinkName, Part: part})
	return &b.Chunks[len(b.Chunks)-1]
}

// collector makes batches of the records that may be saved. Its caller holds the line's mu.
type collector struct {
	seats   []*seat
	batches []*Batch
}

// last is the batch that is being made.
func (c *collector) last() *Batch {
	if len(c.batches) == 0 {
		c.batches = append(c.batches, newBatch())
	}
	return c.batches[len(c.batches)-1]
}

// give adds a record, which goes to disk for the listeners that have not acknowledged it.
func (c *collector) give(rec *change.Record, missing uint64) {
	b := c.last()
	object, _ := rec.Keeps()
	if !b.takes(len(object)) {
		b = newBatch()
		c.batches = append(c.batches, b)
	}
	b.Records, b.objects = append(b.Records, rec), b.objects+len(object)
	for ; missing != 0; missing &= missing - 1 {
		s := c.seats[bits.TrailingZeros64(missing)]
		part, order, ok := s.Disk.Spill(rec)
		switch {
		case !ok:
			continue
		case s.Coalesce:
			b.merged = append(b.merged, mergedRecord{rec, s.Name, part, order})
		default:
			b.spool(s.Name, part, rec)
		}
		b.bytes += rec.Size()
	}
}

// close gives the chunks their numbers.
func (c *collector) close() {
	for _, b := range c.batches {
		b.close()
	}
	for _, s := range c.seats {
		var counts [2]uint64
		var mine []*Chunk
		for _, b := range c.batches {
			for i := range b.Chunks {
				if chunk := &b.Chunks[i]; chunk.Sink == s.Name {
					mine = append(mine, chunk)
					counts[chunk.Part]++
				}
			}
		}
		next := s.Disk.Number(counts)
		for _, chunk := range mine {
			chunk.Number = next[chunk.Part]
			next[chunk.Part]++
		}
	}
}
