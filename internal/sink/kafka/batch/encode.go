package batch

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Header is one header of a record.
type Header struct{ Name, Value string }

// Record is one record to be written. A nil Key is null, a nil Value is a tombstone.
type Record struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  int64 // CreateTime, in milliseconds since 1970
}

// Encoder builds one batch after the other. It keeps what its codec needs between batches, so it is worth keeping. It
// is for one goroutine at a time.
type Encoder struct {
	compressor
	buf               []byte // of the batch: room for its header, and the records as they are without compression
	count             int32
	baseTime, maxTime int64
}

// NewEncoder returns an encoder with an empty batch.
func NewEncoder(codec Codec) (*Encoder, error) {
	c, err := newCompressor(codec)
	if err != nil {
		return nil, fmt.Errorf("prepare codec %s: %w", codec, err)
	}
	return &Encoder{compressor: c}, nil
}

// Count is the number of records in the batch.
func (e *Encoder) Count() int { return int(e.count) }

// Size is the size of the batch in bytes, before compression. Finish returns no more than that.
func (e *Encoder) Size() int { return max(len(e.buf), HeaderSize) }

// Reset drops what was added.
func (e *Encoder) Reset() { e.buf, e.count = e.buf[:0], 0 }

// Add puts a record after those of the batch. It copies all that the record points at.
func (e *Encoder) Add(r *Record) {
	if e.count == 0 {
		e.buf = append(e.buf[:0], make([]byte, HeaderSize)...)
		e.baseTime, e.maxTime = r.Timestamp, r.Timestamp
	}
	e.maxTime = max(e.maxTime, r.Timestamp)
	b := appendVarint(e.buf, int64(bodySize(r, r.Timestamp-e.baseTime, int64(e.count))))
	b = append(b, 0) // attributes, of which there are none
	b = appendVarint(b, r.Timestamp-e.baseTime)
	b = appendVarint(b, int64(e.count))
	b = appendBytes(b, r.Key)
	b = appendBytes(b, r.Value)
	b = appendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		b = append(appendVarint(b, int64(len(r.Headers[i].Name))), r.Headers[i].Name...)
		b = append(appendVarint(b, int64(len(r.Headers[i].Value))), r.Headers[i].Value...)
	}
	e.buf = b
	e.count++
}

// Finish returns the batch as it goes over the wire, and begins an empty one. The result belongs to the caller; spare
// is memory that the encoder may keep or return. Records that compression does not make smaller stay uncompressed.
func (e *Encoder) Finish(spare []byte, p Producer) ([]byte, error) {
	out, codec := e.buf, None
	if e.codec != None {
		packed, err := e.compress(append(spare[:0], e.buf[:HeaderSize]...), e.buf[HeaderSize:])
		if err != nil {
			return nil, fmt.Errorf("compress a batch of %d records with %s: %w", e.count, e.codec, err)
		}
		spare = packed
		if len(packed) < len(e.buf) {
			out, codec, spare = packed, e.codec, e.buf
		}
	}
	e.seal(out, codec, p)
	e.buf, e.count = spare[:0], 0
	return out, nil
}

func (e *Encoder) seal(b []byte, codec Codec, p Producer) {
	attributes := uint16(codec)
	if p.Transactional {
		attributes |= transactionalMask
	}
	be := binary.BigEndian
	be.PutUint64(b, 0) // the broker gives the offset
	be.PutUint32(b[atLength:], uint32(len(b)-frameSize))
	be.PutUint32(b[atEpoch:], 1<<32-1) // -1: unknown
	b[atMagic] = magic2
	be.PutUint16(b[atAttributes:], attributes)
	be.PutUint32(b[atLastDelta:], uint32(e.count-1))
	be.PutUint64(b[atBaseTime:], uint64(e.baseTime))
	be.PutUint64(b[atMaxTime:], uint64(e.maxTime))
	be.PutUint64(b[atProducer:], uint64(p.ID))
	be.PutUint16(b[atProdEpoch:], uint16(p.Epoch))
	be.PutUint32(b[atSequence:], uint32(p.Sequence))
	be.PutUint32(b[atCount:], uint32(e.count))
	be.PutUint32(b[atCRC:], checksum(b[atAttributes:]))
}

// bodySize is the size of a record after its length.
func bodySize(r *Record, timeDelta, offsetDelta int64) int {
	n := 1 + varintSize(timeDelta) + varintSize(offsetDelta) + bytesSize(r.Key) + bytesSize(r.Value) + varintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		h := &r.Headers[i]
		n += varintSize(int64(len(h.Name))) + len(h.Name) + varintSize(int64(len(h.Value))) + len(h.Value)
	}
	return n
}

func appendBytes(b, value []byte) []byte {
	if value == nil {
		return appendVarint(b, -1)
	}
	return append(appendVarint(b, int64(len(value))), value...)
}

func bytesSize(value []byte) int {
	if value == nil {
		return 1
	}
	return varintSize(int64(len(value))) + len(value)
}

// appendVarint is the zigzag encoding of protocol buffers, which encoding/binary has, too.
func appendVarint(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func varintSize(v int64) int {
	zigzag := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}
