package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// reclaimAfter is how many bytes of removed chunks are given back to the volume at once.
const reclaimAfter = 16 << 20

// reclaimed is what is known of the space of a sink's spool.
type reclaimed struct {
	spool fifo.Spool // as it is saved
	until uint64     // the first chunk of Main whose space was not given back
	gone  int64      // bytes of removed chunks whose space was not given back
}

// spools are the queues of sinks on disk.
type spools struct {
	*database
	codec     codec
	reclaimed map[string]*reclaimed // by sink; the database's lock guards it
}

// Spools are what a save puts on disk, by the name of the sink.
type Spools map[string]Spooled

// Spooled are the new chunks of a sink's spool, and its extent with them.
type Spooled struct {
	Chunks []fifo.Chunk
	Extent fifo.Spool
}

// put writes chunks and extents.
func (s *spools) put(b *rows, spools Spools) {
	for name, spooled := range spools {
		for _, chunk := range spooled.Chunks {
			b.set(spoolKey(name, chunk.Part, chunk.Number), chunk.Value)
		}
		b.value = appendSpool(b.value[:0], &spooled.Extent)
		b.set(keyOf(tableSpooled, name), b.value)
		for n := s.reclaimedOf(name).spool[fifo.Ahead].First; n < spooled.Extent[fifo.Ahead].First; n++ { // these are few
			b.remove(spoolKey(name, fifo.Ahead, n))
		}
		if spooled.Extent.Empty() { // so that nothing stays that was redacted by earlier rules (I9)
			b.removeAll(keyOf(tableSpool, name, ""))
		}
	}
}

// Spool is the extent of the sink's spool.
func (s *spools) Spool(sinkName string) (fifo.Spool, error) {
	spool, _, err := read(s.database, keyOf(tableSpooled, sinkName), "the spool of sink "+sinkName, parseSpool)
	return spool, err
}

// ReadSpool reads records from the front of the extent: all of Ahead, and then whole chunks of Main, up to so many
// bytes and records together, but at least one chunk. It takes what was read off the extent.
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

// SetForms says by which rules the records of a stream are cut and redacted. It is called once, before anything is
// encoded.
func (s *spools) SetForms(of func(*change.Stream) string) { s.codec.forms = of }

// Encode makes the value of a chunk.
func (s *spools) Encode(records []*change.Record) ([]byte, error) { return s.codec.encode(records) }

// load reads the extents. Chunks that a crash has left below one are given back with the next ones.
func (s *spools) load() error {
	all, err := byName(s.database, tableSpooled, "the spool of a sink", parseSpool)
	for name, spool := range all {
		s.reclaimed[name] = &reclaimed{spool: spool, gone: reclaimAfter}
	}
	return err
}

// reclaimedOf is the sink's entry. The caller holds mu.
func (s *spools) reclaimedOf(sinkName string) *reclaimed {
	if s.reclaimed[sinkName] == nil {
		s.reclaimed[sinkName] = &reclaimed{}
	}
	return s.reclaimed[sinkName]
}

// forgetReclaimed notes that the sink's spool was removed: the next one begins with the first chunk again.
func (s *spools) forgetReclaimed(sinkName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reclaimed, sinkName)
}

// reclaim gives the space of removed chunks of Main back to the volume, many at once. A crash before that leaves them
// below the extent, where nobody reads.
func (s *spools) reclaim(spools Spools) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, spooled := range spools {
		known := s.reclaimedOf(name)
		known.gone += known.spool[fifo.Main].Bytes - spooled.Extent[fifo.Main].Bytes
		for _, chunk := range spooled.Chunks {
			if chunk.Part == fifo.Main {
				known.gone += int64(len(chunk.Value))
			}
		}
		known.spool = spooled.Extent
		if first := spooled.Extent[fifo.Main].First; known.gone >= reclaimAfter && first > known.until {
			if err := s.excise(spoolKey(name, fifo.Main, 0), spoolKey(name, fifo.Main, first)); err != nil {
				return err
			}
			known.until, known.gone = first, 0
		}
	}
	return nil
}

// spoolKey is the key of a chunk, and the end of the range of those before it.
func spoolKey(sinkName string, part fifo.Part, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(keyOf(tableSpool, sinkName, ""), byte(part)), number)
}

// A chunk is a version, the number of its records and the length of their text in bytes, both varints, and one zstd
// frame (RFC 8878) with the text: CBOR (RFC 8949).
const chunkVersion = 2

// maxFrame is the longest text of a chunk in bytes; more is damage. A chunk has a batch, or one record of any size, and
// etcd takes none above a few megabytes.
const maxFrame = 1 << 30

// window is how far back a frame may refer, in bytes. An encoder that is told to save memory moves all of it with every
// block of 128 KiB, which takes as long as all else that it does.
const window = 1 << 20

// chunkText is the content of a chunk. The records refer to streams and snapshots by their indexes.
type chunkText struct {
	_         struct{} `cbor:",toarray"`
	Streams   []change.Stream
	Forms     []string // of the streams' records; nil before SetForms
	Snapshots []change.Snapshot
	Records   []chunkRecord
}

// chunkRecord is a record in a chunk.
type chunkRecord struct {
	_                                                    struct{} `cbor:",toarray"`
	Op                                                   change.Op
	Stream, Snapshot                                     int // Snapshot is -1 for none
	Namespace, Name, UID, Version, Sink, Epoch, Withheld string
	Received                                             time.Time
	Object, Before, Actor, Involved                      []byte
	FinalStateUnknown, Last, DuringSnapshot              bool
}

// codec makes and reads chunks, by several goroutines.
type codec struct {
	forms func(*change.Stream) string // nil where nobody asks for them; set before the first use
	texts sync.Pool                   // of *bytes.Buffer: a chunk's text may be megabytes

	once  sync.Once // makes the rest when the first is needed: the tables of zstd take a few megabytes
	cbor  cbor.UserBufferEncMode
	zip   *zstd.Encoder
	unzip *zstd.Decoder
	err   error
}

func (c *codec) start() error {
	c.once.Do(func() {
		if c.cbor, c.err = (cbor.EncOptions{Time: cbor.TimeRFC3339Nano}).UserBufferEncMode(); c.err != nil {
			return
		}
		c.zip, c.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(false))
		if c.err == nil {
			c.unzip, c.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
		}
	})
	return c.err
}

// encode makes the value of a chunk.
func (c *codec) encode(records []*change.Record) ([]byte, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	text, used := c.texts.Get().(*bytes.Buffer)
	if !used {
		text = &bytes.Buffer{}
	}
	text.Reset()
	if err := c.cbor.MarshalToBuffer(c.textOf(records), text); err != nil {
		return nil, fmt.Errorf("encode a chunk of %d records: %w", len(records), err)
	}
	value := binary.AppendUvarint([]byte{chunkVersion}, uint64(len(records)))
	value = c.zip.EncodeAll(text.Bytes(), binary.AppendUvarint(value, uint64(text.Len())))
	const most = 16 << 20 // few chunks need more
	if text.Cap() <= most {
		c.texts.Put(text)
	}
	return value, nil
}

func (c *codec) textOf(records []*change.Record) *chunkText {
	text := &chunkText{Records: make([]chunkRecord, len(records))}
	streams, snapshots := map[change.Stream]int{}, map[*change.Snapshot]int{}
	for at, rec := range records {
		stream, found := streams[*rec.Stream]
		if !found {
			stream = len(text.Streams)
			streams[*rec.Stream] = stream
			if text.Streams = append(text.Streams, *rec.Stream); c.forms != nil {
				text.Forms = append(text.Forms, c.forms(rec.Stream))
			}
		}
		snapshot := -1
		if s := rec.Snapshot; s != nil {
			if snapshot, found = snapshots[s]; !found || rec.Op == change.SnapshotEnd {
				snapshot = len(text.Snapshots)
				snapshots[s] = snapshot
				text.Snapshots = append(text.Snapshots, keptSnapshot(rec))
			}
		}
		text.Records[at] = chunkRecord{
			Op: rec.Op, Stream: stream, Snapshot: snapshot, Namespace: rec.Key.Namespace, Name: rec.Key.Name, UID: rec.UID,
			Version: rec.ResourceVersion, Sink: rec.Sink, Epoch: rec.Epoch, Withheld: rec.Withheld, Received: rec.Received,
			Object: rec.Object, Before: rec.Before, Actor: rec.Actor, Involved: rec.Involved,
			FinalStateUnknown: rec.FinalStateUnknown, Last: rec.Last, DuringSnapshot: rec.DuringSnapshot,
		}
	}
	return text
}

// keptSnapshot is a copy of the record's snapshot. Only in the record of the end the counts are final and may be read,
// so that record has an entry of its own.
func keptSnapshot(rec *change.Record) change.Snapshot {
	s := rec.Snapshot
	kept := change.Snapshot{
		ID: s.ID, Reason: s.Reason, From: s.From, Since: s.Since, ResourceVersion: s.ResourceVersion, Epoch: s.Epoch,
		Sinks: s.Sinks, Limits: s.Limits,
	}
	if rec.Op == change.SnapshotEnd {
		kept.Counts = s.Counts
	}
	return kept
}

// chunkSize returns the length of a chunk's text in bytes, the number of its records, and its frame.
func chunkSize(value []byte) (raw, records int, frame []byte, err error) {
	if len(value) == 0 || value[0] != chunkVersion {
		return 0, 0, nil, fmt.Errorf("a chunk: %w", errValue)
	}
	r := Reader{Rest: value[1:]}
	n, size := r.Number(), r.Number()
	if r.Bad || size > maxFrame || n > size {
		return 0, 0, nil, fmt.Errorf("a chunk: %w", errValue)
	}
	return int(size), int(n), r.Rest, nil
}

// decode appends the chunk's records to dst.
func (c *codec) decode(dst []*change.Record, value []byte) ([]*change.Record, error) {
	size, n, frame, err := chunkSize(value)
	if err == nil {
		err = c.start()
	}
	if err != nil {
		return dst, err
	}
	raw, err := c.unzip.DecodeAll(frame, make([]byte, 0, size))
	var text chunkText
	if err == nil {
		err = cbor.Unmarshal(raw, &text)
	}
	if err == nil && len(text.Records) != n {
		err = errValue
	}
	if err != nil {
		return dst, fmt.Errorf("a chunk of %d records: %w", n, err)
	}
	for at := range text.Records {
		r := &text.Records[at]
		if r.Stream < 0 || r.Stream >= len(text.Streams) || r.Snapshot >= len(text.Snapshots) {
			return dst, fmt.Errorf("a chunk of %d records: %w", n, errValue)
		}
		rec := &change.Record{
			Op: r.Op, Stream: &text.Streams[r.Stream], Key: change.Key{Namespace: r.Namespace, Name: r.Name}, UID: r.UID,
			ResourceVersion: r.Version, Sink: r.Sink, Epoch: r.Epoch, Withheld: r.Withheld, Received: r.Received,
			Object: r.Object, Before: r.Before, Actor: r.Actor, Involved: r.Involved,
			FinalStateUnknown: r.FinalStateUnknown, Last: r.Last, DuringSnapshot: r.DuringSnapshot,
		}
		if r.Snapshot >= 0 {
			rec.Snapshot = &text.Snapshots[r.Snapshot]
		}
		if r.Stream < len(text.Forms) {
			rec.Form = text.Forms[r.Stream]
		}
		dst = append(dst, rec)
	}
	return dst, nil
}
