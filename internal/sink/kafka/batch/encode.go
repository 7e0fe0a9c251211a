package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
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
	codec             Codec
	gzip              *gzip.Writer
	lz4               *lz4.Writer
	zstd              *zstd.Encoder
	buf               []byte // of the batch: room for its header, and the records as they are without compression
	packed            []byte // the same, compressed
	record            []byte // one without its length
	count             int32
	baseTime, maxTime int64
}

// NewEncoder returns an encoder with an empty batch. All codecs are set to their cheapest levels: on objects of an API
// server, higher ones cost several times the CPU for a tenth of the bytes.
func NewEncoder(codec Codec) *Encoder {
	e := &Encoder{codec: codec}
	var err error
	switch codec {
	case Gzip:
		e.gzip, err = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	case LZ4:
		e.lz4 = lz4.NewWriter(nil)
		err = e.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1))
	case Zstd:
		// One batch at a time is compressed, and it is rarely above the window.
		e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	}
	if err != nil { // the options are such as there are
		panic(fmt.Sprintf("prepare codec %s: %v", codec, err))
	}
	return e
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
	b := append(e.record[:0], 0) // attributes, of which there are none
	b = kbin.AppendVarlong(b, r.Timestamp-e.baseTime)
	b = kbin.AppendVarint(b, e.count)
	b = kbin.AppendVarintBytes(b, r.Key)
	b = kbin.AppendVarintBytes(b, r.Value)
	b = kbin.AppendVarint(b, int32(len(r.Headers)))
	for _, h := range r.Headers {
		b = kbin.AppendVarintString(kbin.AppendVarintString(b, h.Name), h.Value)
	}
	e.buf, e.record = kbin.AppendVarintBytes(e.buf, b), b
	e.count++
}

// Finish returns the batch as it goes over the wire, and begins an empty one, in the spare memory. The result belongs
// to the caller. Records that compression does not make smaller stay uncompressed.
func (e *Encoder) Finish(spare []byte, p Producer) []byte {
	out, codec, taken := e.buf, None, &e.buf
	if e.codec != None {
		e.packed = e.compress(append(e.packed[:0], e.buf[:HeaderSize]...), e.buf[HeaderSize:])
		if len(e.packed) < len(e.buf) {
			out, codec, taken = e.packed, e.codec, &e.packed
		}
	}
	header := kmsg.RecordBatch{ // the broker gives the offset
		Length: int32(len(out) - frameSize), PartitionLeaderEpoch: -1, Magic: magic2, Attributes: int16(codec),
		LastOffsetDelta: e.count - 1, FirstTimestamp: e.baseTime, MaxTimestamp: e.maxTime,
		ProducerID: p.ID, ProducerEpoch: p.Epoch, FirstSequence: p.Sequence, NumRecords: e.count,
	}
	if p.Transactional {
		header.Attributes |= transactionalMask
	}
	header.AppendTo(out[:0])
	binary.BigEndian.PutUint32(out[atCRC:], checksum(out[atAttributes:]))
	*taken = spare[:0]
	e.Reset()
	return out
}

// HeaderSize is the size of a batch without its records, in bytes.
const HeaderSize = 61

const (
	atLength     = 8
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21

	// frameSize is what the length does not count.
	frameSize = 12
	magic2    = 2
)

// The bits of a batch's attributes.
const (
	codecMask         = 0x07
	transactionalMask = 0x10
	controlMask       = 0x20
)

// Producer is whose batch it is, and its place among the batches of that producer (KIP-98).
type Producer struct {
	ID            int64
	Epoch         int16
	Sequence      int32 // of the first record
	Transactional bool
}

// NextSequence is the sequence n records after the given one. It wraps as Kafka's does
// (DefaultRecordBatch.incrementSequence): 0 follows the largest.
func NextSequence(sequence int32, n int) int32 {
	return int32((int64(sequence) + int64(n)) & 0x7fffffff)
}

// checksum is Kafka's CRC-32C. The standard library makes the table once.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Codec is how the records of a batch are compressed: the number that Kafka gives it.
type Codec uint8

// The codecs of Kafka (KIP-110 for zstd).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Codecs are the names of the codecs, by number.
func Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

// ParseCodec is the codec of a name.
func ParseCodec(name string) (Codec, error) {
	if i := slices.Index(Codecs(), name); i >= 0 {
		return Codec(i), nil
	}
	return None, fmt.Errorf("compression %q: use one of %s", name, strings.Join(Codecs(), ", "))
}

func (c Codec) String() string {
	if names := Codecs(); int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// compress appends the compressed src to dst.
func (e *Encoder) compress(dst, src []byte) []byte {
	switch e.codec {
	case Snappy:
		// Java's reader takes a bare block as well as xerial's framing of blocks of 32 KiB, and the block is smaller.
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
		packed := s2.EncodeSnappy(dst[len(dst):cap(dst)], src)
		return dst[:len(dst)+len(packed)]
	case Zstd:
		return e.zstd.EncodeAll(src, dst)
	}
	out, err := bytes.NewBuffer(dst), error(nil)
	if e.codec == Gzip {
		e.gzip.Reset(out)
		_, err = e.gzip.Write(src)
		err = errors.Join(err, e.gzip.Close())
	} else {
		e.lz4.Reset(out)
		_, err = e.lz4.Write(src)
		err = errors.Join(err, e.lz4.Close())
	}
	if err != nil { // memory takes all
		panic(fmt.Sprintf("compress with %s: %v", e.codec, err))
	}
	return out.Bytes()
}

// Partition is where Java's default partitioner puts a record with the key, of n partitions: consumers that join topics
// by key rely on it.
func Partition(key []byte, n int) int32 {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return int32(kafka.Murmur2Balancer{Consistent: true}.Balance(kafka.Message{Key: key}, numbers...))
}
