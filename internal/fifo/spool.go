package fifo

import (
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// spool is the part of a backlog that is on disk, or on its way there. It comes before the queue: the listener takes
// from memory only when everything on disk is delivered (I3).
//
// Records go to disk in the batch that saves their positions. So do those that are being written to the sink: otherwise
// the position would stay before them until the sink has them. Their copies are ahead of all others, so that after a
// crash the records that the sink may have are read first.
type spool struct {
	saved  Spool     // as the state has it
	next   [2]uint64 // the number of the next chunk, by part
	coming []chunked // records that have left the queue for a chunk that has no number yet
	cursor [2]uint64 // all chunks before are delivered
	gone   amount    // what of Main is delivered but not removed from the state yet
	oldest time.Time // about when the oldest record on disk was received
}

// resume takes over what an earlier life has left on disk.
func (s *spool) resume(saved Spool, oldest time.Time) {
	s.saved, s.oldest = saved, oldest
	for part, extent := range saved {
		s.cursor[part], s.next[part] = extent.First, extent.Next
	}
}

// behind says whether undelivered records are on disk, or on their way there.
func (s *spool) behind() bool { return s.cursor != s.next || len(s.coming) > 0 }

// readable says whether the next records are on disk, and the removal of those before them is saved: after a crash the
// records that the sink may have must be the first ones there.
func (s *spool) readable() bool {
	return s.saved[Ahead].First == s.cursor[Ahead] && s.saved[Main].First == s.cursor[Main] && !s.saved.Empty()
}

// whole says whether the state has every record that left the queue for disk.
func (s *spool) whole() bool {
	return s.saved[Ahead].Next == s.next[Ahead] && s.saved[Main].Next == s.next[Main]
}

// reading is what was read, from the extents before and after.
func (s *spool) reading(before, after *Spool) *reading {
	return &reading{
		cursor: [2]uint64{after[Ahead].First, after[Main].First},
		amount: amount{before[Main].Bytes - after[Main].Bytes, before[Main].Records - after[Main].Records},
	}
}

// delivered notes that the sink has the whole flight. last is true if nothing is left on disk then.
func (s *spool) delivered(f *flight) (last bool) {
	if f.read != nil {
		s.cursor, s.gone = f.read.cursor, f.read.amount
	}
	if len(f.ahead) > 0 {
		s.cursor[Ahead] = s.next[Ahead]
	}
	if last = !s.behind(); last {
		s.oldest = time.Time{}
	}
	return last
}

// add takes a record that is to be in a chunk.
func (s *spool) add(one chunked) {
	if s.oldest.IsZero() {
		s.oldest = one.rec.Received
	}
	s.coming = append(s.coming, one)
}

// chunks are the added records in numbered chunks of about most.
func (s *spool) chunks(most Limit) (chunks []Chunk) {
	for part := range s.next {
		var last *Chunk
		for _, one := range s.coming {
			if int(one.part) != part {
				continue
			}
			if last == nil || last.bytes >= most.Bytes || len(last.Records) >= most.Records {
				chunks = append(chunks, Chunk{Part: one.part, Number: s.next[part]})
				last = &chunks[len(chunks)-1]
				s.next[part]++
			}
			last.Records = append(last.Records, one.rec)
			last.bytes += one.rec.Size()
		}
	}
	clear(s.coming)
	s.coming = s.coming[:0]
	return chunks
}

// left is the saved extent without what is delivered.
func (s *spool) left() Spool {
	left := s.saved
	if at := s.cursor[Ahead]; left[Ahead].First != at { // all of Ahead is delivered at once
		left[Ahead] = Extent{First: at, Next: at}
	}
	main := &left[Main]
	main.First = s.cursor[Main]
	main.Bytes -= s.gone.bytes
	main.Records -= s.gone.records
	return left
}

// save notes what the state has now.
func (s *spool) save(extent Spool) {
	if extent[Main].First != s.saved[Main].First {
		s.gone = amount{}
	}
	s.saved = extent
}

// flight is what the sink is being given: the records that were taken and are not acknowledged.
type flight struct {
	records []*change.Record
	read    *reading            // nil if the records are from memory
	ahead   map[uint64]struct{} // Seqs of records that were taken from memory and are on disk, or on their way there
	unsaved int                 // how many of the records are neither from disk nor ahead
}

// reading is what was read from disk.
type reading struct {
	cursor [2]uint64 // the next chunks after it
	amount amount    // of Main
}

// take begins to give the sink the records.
func (f *flight) take(records []*change.Record, read *reading) {
	f.records, f.read, f.unsaved = append(f.records[:0], records...), read, len(records)
	if read != nil {
		f.unsaved = 0
	}
}

// onDisk says whether the record was read from disk, or has gone there: the spool accounts for it, not the ledger.
func (f *flight) onDisk(rec *change.Record) bool {
	_, ahead := f.ahead[rec.Seq]
	return ahead || rec.Seq == 0
}

// isSaved says whether some of the flight is on disk.
func (f *flight) isSaved() bool { return f.read != nil || len(f.ahead) > 0 }

// spill notes that the record goes to disk, too, and returns its index in the flight.
func (f *flight) spill(rec *change.Record) (order uint64) {
	f.ahead[rec.Seq] = struct{}{}
	f.unsaved--
	return uint64(slices.Index(f.records, rec))
}

// ack notes that the sink has the records. One that was cut or replaced on its way has the Seq of the original. Records
// from disk all have the Seq 0.
func (f *flight) ack(batch []*change.Record) {
	for _, rec := range batch {
		at := slices.IndexFunc(f.records, func(taken *change.Record) bool { return taken.Seq == rec.Seq })
		switch {
		case at < 0:
			continue
		case at == 0: // as a rule
			f.records = f.records[1:]
		default:
			f.records = slices.Delete(f.records, at, at+1)
		}
		if !f.onDisk(rec) {
			f.unsaved--
		}
	}
}

// end empties the flight.
func (f *flight) end() {
	f.records, f.read, f.unsaved = f.records[:0], nil, 0
	clear(f.ahead)
}

// Chunk is records that go to disk together, and are read as one batch.
type Chunk struct {
	Part    Part
	Number  uint64
	Records []*change.Record
	Value   []byte // the records as the store encodes them
	bytes   int    // of the records
}

// chunked is a record that is to be in a chunk.
type chunked struct {
	rec   *change.Record
	part  Part
	order uint64 // by which records of the part are sorted
}

// Part is one of the two queues of a spool.
type Part byte

const (
	// Ahead holds the records that were in flight when they were spooled: the sink may have some of them. They come
	// before all others, and are one batch at most.
	Ahead Part = iota
	// Main holds the others.
	Main
)

// Spool is the extent of what is on disk for one sink, by part. The zero value is an empty one.
type Spool [2]Extent

// Extent is one part of a spool.
type Extent struct {
	First, Next    uint64 // the numbers of the oldest chunk, and of the next one to be written
	Bytes, Records int64  // on disk, after compression
}

// Bytes on disk, of both parts.
func (s *Spool) Bytes() int64 { return s[Ahead].Bytes + s[Main].Bytes }

// Records of both parts.
func (s *Spool) Records() int64 { return s[Ahead].Records + s[Main].Records }

// Empty says whether nothing is spooled.
func (s *Spool) Empty() bool { return s[Ahead].First == s[Ahead].Next && s[Main].First == s[Main].Next }

// amount is bytes on disk and records.
type amount struct{ bytes, records int64 }
