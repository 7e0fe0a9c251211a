package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// reclaimAfter is how many bytes of chunks that are gone are given back to the volume at once.
const reclaimAfter = 16 << 20

// reclaimed is what the store remembers of the space of a sink's spool.
type reclaimed struct {
	spool fifo.Spool // as it is saved
	until uint64     // the first chunk of Main whose space was not given back
	gone  int64      // bytes of chunks that are gone and whose space was not given back
}

// spools are the queues of sinks on disk.
type spools struct {
	*database
	codec     *codec
	reclaimed map[string]*reclaimed // by sink; the database's lock guards it
}

// put writes chunks and extents.
func (s *spools) put(b *rows, chunks map[string][]fifo.Chunk, extents map[string]fifo.Spool) {
	for name, all := range chunks {
		for _, chunk := range all {
			b.set(spoolKey(name, chunk.Part, chunk.Number), chunk.Value)
		}
	}
	for name, spool := range extents {
		b.value = appendSpool(b.value[:0], &spool)
		b.set(spooledKey(name), b.value)
		for n := s.reclaimedOf(name).spool[fifo.Ahead].First; n < spool[fifo.Ahead].First; n++ { // these are few
			b.remove(spoolKey(name, fifo.Ahead, n))
		}
		if spool.Empty() { // what was cut and redacted by earlier rules than today's is not to stay (I9)
			b.removeAll(sinkPrefix(tableSpool, name))
		}
	}
}

// Spool is the extent of what is spooled for the sink.
func (s *spools) Spool(sinkName string) (fifo.Spool, error) {
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
func (s *spools) ReadSpool(sinkName string, extent *fifo.Spool, bytes, records int) ([]*change.Record, error) {
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
			raw, n, _, err := chunkSize(value)
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
func (s *spools) SetForms(of func(*change.Stream) string) { s.codec.forms = of }

// Encode makes the value of a chunk.
func (s *spools) Encode(records []*change.Record) ([]byte, error) { return s.codec.encode(records) }

// load remembers the extents. What a crash left below one is given back with the next chunks that go.
func (s *spools) load() error {
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
func (s *spools) reclaimedOf(sinkName string) *reclaimed {
	if s.reclaimed[sinkName] == nil {
		s.reclaimed[sinkName] = &reclaimed{}
	}
	return s.reclaimed[sinkName]
}

// forgetReclaimed notes that the sink's spool is gone: the next one begins with the first chunk again.
func (s *spools) forgetReclaimed(sinkName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reclaimed, sinkName)
}

// reclaim gives the space of chunks that are gone back to the volume, many at once. A crash before it leaves them below
// the extent, where nobody reads.
func (s *spools) reclaim(chunks map[string][]fifo.Chunk, extents map[string]fifo.Spool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, spool := range extents {
		known := s.reclaimedOf(name)
		known.gone += known.spool[fifo.Main].Bytes - spool[fifo.Main].Bytes
		for _, chunk := range chunks[name] {
			if chunk.Part == fifo.Main {
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

func spooledKey(sinkName string) []byte { return append([]byte{tableSpooled}, sinkName...) }

// spoolKey is the key of a chunk, and the end of all before it.
func spoolKey(sinkName string, part fifo.Part, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(sinkPrefix(tableSpool, sinkName), byte(part)), number)
}
