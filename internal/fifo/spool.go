package fifo

import "time"

// spool is the part of a backlog that is on disk, or on its way there. It comes before what is in memory: the listener
// takes from memory only when everything on disk is delivered (I3).
//
// Records go to disk in the batch that saves their positions, those that are being written to the sink as well:
// otherwise the position would stay at them for as long as the sink takes. Their copies are ahead of all others, so
// that after a crash the records which the sink may have are the first that are read.
type spool struct {
	saved  Spool     // as the state has it
	next   [2]uint64 // the number of the next chunk, by part
	coming chunking  // records that have left the queue for a chunk that has no number yet
	cursor [2]uint64 // all chunks before are delivered
	gone   amount    // of what is delivered of Main and still saved
	oldest time.Time // when the oldest record on disk was received, about
}

// resume takes up what an earlier process has left.
func (s *spool) resume(saved Spool, oldest time.Time) {
	s.saved, s.oldest = saved, oldest
	for part, extent := range saved {
		s.cursor[part], s.next[part] = extent.First, extent.Next
	}
}

// behind says whether records are on disk, or on their way there, that are not delivered.
func (s *spool) behind() bool { return s.cursor != s.next || len(s.coming) > 0 }

// readable says whether the next records are on disk, and no others before them are still saved: after a crash the
// records that the sink may have must be the first.
func (s *spool) readable() bool {
	return s.saved[Ahead].First == s.cursor[Ahead] && s.saved[Main].First == s.cursor[Main] && !s.saved.Empty()
}

// whole says whether the state has everything that went to disk.
func (s *spool) whole() bool {
	return s.saved[Ahead].Next == s.next[Ahead] && s.saved[Main].Next == s.next[Main]
}

// reading is what was read, by the extents before and after.
func (s *spool) reading(before, after *Spool) *reading {
	return &reading{
		cursor: [2]uint64{after[Ahead].First, after[Main].First},
		amount: amount{before[Main].Bytes - after[Main].Bytes, before[Main].Records - after[Main].Records},
	}
}

// delivered notes that everything is that was taken, and says whether that was the last on disk.
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

// chunks gives the chunks of what was added their numbers.
func (s *spool) chunks(most Limit) (chunks []Chunk) {
	for part := range s.next {
		added := s.coming.chunks(Part(part), s.next[part], most)
		s.next[part] += uint64(len(added))
		chunks = append(chunks, added...)
	}
	clear(s.coming)
	s.coming = s.coming[:0]
	return chunks
}

// left is the extent without what is delivered.
func (s *spool) left() Spool {
	left := s.saved
	if at := s.cursor[Ahead]; left[Ahead].First != at { // it is delivered all at once
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
