package pipeline

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// part is what one batch saves.
type part struct {
	records []*change.Record
	marks   map[string]sink.Mark
	carried map[string]carried // by sink: what its mark carries
	// compared are sinks whose log was compared with what is saved, as their mark says.
	compared []string
	told     []checkpoint.Held // what listeners have told by themselves
	chunks   []spoolChunk
	merged   []mergedRecord // that are to be in chunks; none when the part is made
	bytes    int            // of the chunks' records
	objects  int            // bytes of the objects that are kept
}

// spoolChunk is records that go to disk together.
type spoolChunk struct {
	listener int
	part     fifo.Part
	number   uint64
	records  []*change.Record
	bytes    int
}

// maxSpooled is how many bytes of records one batch takes to disk: after compression a batch is then well below half a
// memtable, above which Pebble makes it a table of its own.
const maxSpooled = 4 << 20

// collector makes parts. Its caller holds the line's mu.
type collector struct {
	line  *Line
	parts []*part
}

func newPart() *part { return &part{marks: map[string]sink.Mark{}, carried: map[string]carried{}} }

// last is the part that is being made.
func (c *collector) last() *part {
	if len(c.parts) == 0 {
		c.parts = append(c.parts, newPart())
	}
	return c.parts[len(c.parts)-1]
}

// give adds a record, which goes to disk for the listeners that have not acknowledged it.
func (c *collector) give(rec *change.Record, missing uint64) {
	p := c.last()
	object, _ := rec.Keeps()
	if !p.takes(len(object)) {
		p = newPart()
		c.parts = append(c.parts, p)
	}
	p.records, p.objects = append(p.records, rec), p.objects+len(object)
	for ; missing != 0; missing &= missing - 1 {
		listener := bits.TrailingZeros64(missing)
		lst := c.line.listeners[listener]
		if rec.Replay != nil {
			lst.giveBack(rec)
			continue
		}
		part, order := lst.spill(rec)
		p.bytes += rec.Size()
		if lst.Coalesce {
			p.merged = append(p.merged, mergedRecord{rec, listener, part, order})
			continue
		}
		p.spool(lst, part, rec)
	}
}

// spool puts the record into a chunk.
func (p *part) spool(lst *listener, part fifo.Part, rec *change.Record) {
	chunk := p.chunk(lst, part)
	chunk.records = append(chunk.records, rec)
	chunk.bytes += rec.Size()
}

// mergedRecord goes to disk out of a queue that coalesces.
type mergedRecord struct {
	rec      *change.Record
	listener int
	part     fifo.Part
	order    uint64 // of its place in the queue
}

// close puts what goes to disk out of queues that coalesce into chunks, in the order of the queues: what has taken the
// place of a snapshot's record stays within the snapshot's frames.
func (p *part) close(listeners []*listener) {
	slices.SortStableFunc(p.merged, func(a, b mergedRecord) int { return cmp.Compare(a.order, b.order) })
	for _, m := range p.merged {
		p.spool(listeners[m.listener], m.part, m.rec)
	}
	p.merged = nil
}

// takes says whether the batch is small enough for one more record, of whose object so many bytes are kept.
func (p *part) takes(object int) bool {
	return len(p.records) == 0 ||
		len(p.records) < checkpoint.MaxRecords && p.bytes < maxSpooled && p.objects+object <= checkpoint.MaxObjects
}

// chunk is the one that takes the listener's next record. Each can be read as one batch for its sink.
func (p *part) chunk(lst *listener, part fifo.Part) *spoolChunk {
	most := batchLimit()
	for i := range p.chunks {
		chunk := &p.chunks[len(p.chunks)-1-i]
		if chunk.listener == lst.index && chunk.part == part {
			if len(chunk.records) < most.Records && chunk.bytes < most.Bytes {
				return chunk
			}
			break
		}
	}
	p.chunks = append(p.chunks, spoolChunk{listener: lst.index, part: part, number: lst.number(part)})
	return &p.chunks[len(p.chunks)-1]
}
