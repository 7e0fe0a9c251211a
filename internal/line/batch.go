package line

import (
	"math/bits"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Batch is what one commit saves.
type Batch struct {
	Records []*change.Record
	Marks   map[string]sink.Mark
	Told    []checkpoint.Held       // what listeners have told by themselves
	Chunks  map[string][]fifo.Chunk // by sink

	carried  map[string]carried // by sink: what its mark carries
	compared []string           // sinks whose log was compared with what is saved, as their mark says
	bytes    int                // of the records that go to disk
	objects  int                // bytes of the objects that are kept
}

func newBatch() *Batch {
	return &Batch{Marks: map[string]sink.Mark{}}
}

// State is the batch as the state takes it, but for its chunks.
func (b *Batch) State() checkpoint.Batch {
	state := checkpoint.Batch{
		Records: b.Records, Marks: b.Marks, Held: b.Told, Compared: b.compared,
		Spools: map[string]fifo.Spool{}, Chunks: map[string][]fifo.Chunk{},
	}
	if len(b.carried) > 0 { // seldom
		state.Carried = make(map[string]checkpoint.Carried, len(b.carried))
	}
	for name, of := range b.carried {
		state.Carried[name] = of.state()
	}
	return state
}

// taken notes the chunks that are on their way to disk for the sink, which is seldom.
func (b *Batch) taken(sinkName string, chunks []fifo.Chunk) {
	if b.Chunks == nil {
		b.Chunks = map[string][]fifo.Chunk{}
	}
	b.Chunks[sinkName] = chunks
}

// carry notes what the sink's mark carries, which is seldom.
func (b *Batch) carry(sinkName string, of carried) {
	if b.carried == nil {
		b.carried = map[string]carried{}
	}
	b.carried[sinkName] = of
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

// fewRecords is what a batch has room for from its first record on: one that grows from nothing is copied often.
const fewRecords = 64

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
		c.close()
		full := len(b.Records)
		b = newBatch()
		b.Records = make([]*change.Record, 0, full) // it will mostly be as long
		c.batches = append(c.batches, b)
	}
	if b.Records == nil {
		b.Records = make([]*change.Record, 0, fewRecords)
	}
	b.Records, b.objects = append(b.Records, rec), b.objects+len(object)
	for ; missing != 0; missing &= missing - 1 {
		if c.seats[bits.TrailingZeros64(missing)].Disk.Spill(rec) {
			b.bytes += rec.Size()
		}
	}
}

// close ends the last batch.
func (c *collector) close() {
	for _, s := range c.seats {
		if chunks := s.Disk.Chunks(); len(chunks) > 0 {
			c.last().taken(s.Name, chunks)
		}
	}
}
