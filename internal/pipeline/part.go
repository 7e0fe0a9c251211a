package pipeline

import (
	"math/bits"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// part is what one batch saves.
type part struct {
	records []*change.Record
	marks   map[string]sink.Mark
	// compared are sinks whose log was compared with what is saved, as their mark says.
	compared []string
	chunks   []spoolChunk
	bytes    int // of the chunks' records
	objects  int // bytes of the objects that are kept
}

// spoolChunk is records that go to disk together.
type spoolChunk struct {
	listener int
	part     checkpoint.SpoolPart
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

// last is the part that is being made.
func (c *collector) last() *part {
	if len(c.parts) == 0 {
		c.parts = append(c.parts, &part{marks: map[string]sink.Mark{}})
	}
	return c.parts[len(c.parts)-1]
}

// give adds a record, which goes to disk for the listeners that have not acknowledged it.
func (c *collector) give(rec *change.Record, missing uint64) {
	p := c.last()
	object, _ := rec.Keeps()
	if !p.takes(len(object)) {
		p = &part{marks: map[string]sink.Mark{}}
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
		chunk := p.chunk(lst, lst.spill(rec))
		chunk.records = append(chunk.records, rec)
		chunk.bytes += rec.Size()
		p.bytes += rec.Size()
	}
}

// takes says whether the batch is small enough for one more record, of whose object so many bytes are kept.
func (p *part) takes(object int) bool {
	return len(p.records) == 0 ||
		len(p.records) < checkpoint.MaxRecords && p.bytes < maxSpooled && p.objects+object <= checkpoint.MaxObjects
}

// chunk is the one that takes the listener's next record. Each can be read as one batch for its sink.
func (p *part) chunk(lst *listener, part checkpoint.SpoolPart) *spoolChunk {
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
