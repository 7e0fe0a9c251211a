package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Chunk is records that are spooled together. Encode makes its Value.
type Chunk struct {
	Sink   string
	Part   fifo.Part
	Number uint64
	Value  []byte
}

// reclaimAfter is how many bytes of chunks that are gone are given back to the volume at once.
const reclaimAfter = 16 << 20

// reclaimed is what the store remembers of the space of a sink's spool.
type reclaimed struct {
	spool fifo.Spool // as it is saved
	until uint64     // the first chunk of Main whose space was not given back
	gone  int64      // bytes of chunks that are gone and whose space was not given back
}

// spools writes chunks and extents.
func (w *writer) spools(b *Batch) error {
	for _, chunk := range b.Chunks {
		if err := w.batch.Set(spoolKey(chunk.Sink, chunk.Part, chunk.Number), chunk.Value, nil); err != nil {
			return err
		}
	}
	for name, spool := range b.Spools {
		w.value = appendSpool(w.value[:0], &spool)
		if err := w.batch.Set(spooledKey(name), w.value, nil); err != nil {
			return err
		}
		for n := w.store.reclaimedOf(name).spool[fifo.Ahead].First; n < spool[fifo.Ahead].First; n++ { // these are few
			if err := w.batch.Delete(spoolKey(name, fifo.Ahead, n), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// replayBases notes the positions that logs are to be compared with, and forgets those that were.
func (w *writer) replayBases(b *Batch) error {
	for subscription, position := range b.Based {
		w.value = appendPosition(w.value[:0], position)
		if err := w.batch.Set(replayBaseKey(subscription), w.value, nil); err != nil {
			return err
		}
	}
	for _, name := range b.Compared {
		prefix := sinkPrefix(tableReplayBase, name)
		if err := w.batch.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	return nil
}

// ReplayBases are the positions that the sink's log is to be compared with, by stream. They are older than the streams'
// own where records were spooled before the log could be read.
func (s *Store) ReplayBases(sinkName string) (map[string]change.Position, error) {
	replayBases, prefix := map[string]change.Position{}, sinkPrefix(tableReplayBase, sinkName)
	err := s.each(prefix, func(key, value []byte) error {
		position, err := parsePosition(value)
		if err != nil {
			return s.badValue("a base of sink "+sinkName, err)
		}
		replayBases[string(key[len(prefix):])] = position
		return nil
	})
	return replayBases, err
}

// Spool is the extent of what is spooled for the sink.
func (s *Store) Spool(sinkName string) (fifo.Spool, error) {
	value, found, err := s.get(spooledKey(sinkName))
	if err != nil || !found {
		return fifo.Spool{}, err
	}
	spool, err := parseSpool(value)
	if err != nil {
		return fifo.Spool{}, s.badValue("the spool of sink "+sinkName, err)
	}
	return spool, nil
}

// ReadSpool reads records from the front of the extent: all of its part Ahead, and of Main whole chunks that hold
// together no more than so many bytes and records, at least one chunk. It moves the extent's First, and takes from its
// Bytes and Records, what was read.
func (s *Store) ReadSpool(sinkName string, extent *fifo.Spool, bytes, records int) ([]*change.Record, error) {
	var read []*change.Record
	size := 0
	for part := range extent {
		e := &extent[part]
		for e.First < e.Next {
			value, found, err := s.get(spoolKey(sinkName, fifo.Part(part), e.First))
			if err == nil && !found {
				err = s.badValue("the spool of sink "+sinkName, fmt.Errorf("chunk %d of %d is missing", e.First, e.Next))
			}
			if err != nil {
				return nil, err
			}
			raw, n, err := chunkSize(value)
			if err != nil {
				return nil, s.badValue("the spool of sink "+sinkName, err)
			}
			if part == int(fifo.Main) && len(read) > 0 && (size+raw > bytes || len(read)+n > records) {
				return read, nil
			}
			if read, err = s.codec.decode(read, value); err != nil {
				return nil, s.badValue("the spool of sink "+sinkName, err)
			}
			size += raw
			e.First++
			e.Bytes -= int64(len(value))
			e.Records -= int64(n)
		}
	}
	return read, nil
}

// SetForms says by which rules the records of a stream are cut and redacted that are encoded from now on. It is called
// once, before anything is spooled.
func (s *Store) SetForms(of func(*change.Stream) string) { s.codec.forms = of }

// Encode makes the value of a chunk.
func (s *Store) Encode(records []*change.Record) ([]byte, error) { return s.codec.encode(records) }

// openSpools remembers the extents. What a crash left below one is given back with the next chunks that go.
func (s *Store) openSpools() error {
	return s.each([]byte{tableSpooled}, func(key, value []byte) error {
		spool, err := parseSpool(value)
		if err != nil {
			return s.badValue("the spool of sink "+string(key[1:]), err)
		}
		known := s.reclaimedOf(string(key[1:]))
		known.spool, known.gone = spool, reclaimAfter
		return nil
	})
}

// reclaimedOf is what is remembered of the sink; the caller holds mu.
func (s *Store) reclaimedOf(sinkName string) *reclaimed {
	if s.reclaimed == nil {
		s.reclaimed = map[string]*reclaimed{}
	}
	if s.reclaimed[sinkName] == nil {
		s.reclaimed[sinkName] = &reclaimed{}
	}
	return s.reclaimed[sinkName]
}

// reclaim gives the space of chunks that are gone back to the volume, many at once. A crash before it leaves them below
// the extent, where nobody reads.
func (s *Store) reclaim(b *Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, spool := range b.Spools {
		known := s.reclaimedOf(name)
		known.gone += known.spool[fifo.Main].Bytes - spool[fifo.Main].Bytes
		for _, chunk := range b.Chunks {
			if chunk.Sink == name && chunk.Part == fifo.Main {
				known.gone += int64(len(chunk.Value))
			}
		}
		known.spool = spool
		if first := spool[fifo.Main].First; known.gone >= reclaimAfter && first > known.until {
			if err := s.excise(spoolKey(name, fifo.Main, 0), spoolKey(name, fifo.Main, first)); err != nil {
				return err
			}
			known.until, known.gone = first, 0
		}
	}
	return nil
}

// excise deletes a range and gives its space back, which Pebble's DeleteRange leaves to compactions that may never
// come.
func (s *Store) excise(from, to []byte) error {
	if err := s.db.Excise(s.background, pebble.KeyRange{Start: from, End: to}); err != nil {
		return s.failed("commit", err)
	}
	return nil
}

// appendSpool appends an extent of a spool.
func appendSpool(dst []byte, spool *fifo.Spool) []byte {
	for _, e := range spool {
		for _, n := range []uint64{e.First, e.Next, uint64(e.Bytes), uint64(e.Records)} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// parseSpool is the inverse of appendSpool.
func parseSpool(value []byte) (fifo.Spool, error) {
	var spool fifo.Spool
	for part := range spool {
		var n [4]uint64
		for i := range n {
			width := 0
			if n[i], width = binary.Uvarint(value); width <= 0 {
				return fifo.Spool{}, errValue
			}
			value = value[width:]
		}
		spool[part] = fifo.Extent{First: n[0], Next: n[1], Bytes: int64(n[2]), Records: int64(n[3])}
	}
	if len(value) > 0 {
		return fifo.Spool{}, errors.Join(errValue, errors.New("an extent has trailing bytes"))
	}
	return spool, nil
}
