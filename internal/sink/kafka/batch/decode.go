package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var errTrailing = errors.New("there is more after its records")

// Batch is a batch as it lies in a log. It points into the bytes that it was read from. Compaction may have taken any
// of its records, and their offsets were given all the same.
type Batch struct{ kmsg.RecordBatch }

// End is the offset after the batch: where to read on.
func (b *Batch) End() int64 { return b.FirstOffset + int64(b.LastOffsetDelta) + 1 }

// IsControl says whether it holds a marker, which ends a transaction.
func (b *Batch) IsControl() bool { return b.Attributes&controlMask != 0 }

// IsTransactional says whether it counts only when its transaction is committed.
func (b *Batch) IsTransactional() bool { return b.Attributes&transactionalMask != 0 }

func (b *Batch) codec() Codec { return Codec(b.Attributes & codecMask) }

// All are the batches in the bytes, until they end, or end within a batch, as the bytes of a fetch do. An error is the
// last.
func All(data []byte) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			b, rest, err := Read(data)
			if b == nil && err == nil || !yield(b, err) || err != nil {
				return
			}
			data = rest
		}
	}
}

// Read takes the first batch off the bytes. It returns nil where they end within the batch, as the bytes of a fetch do.
func Read(data []byte) (first *Batch, rest []byte, err error) {
	if len(data) < atMagic+1 {
		return nil, data, nil
	}
	be := binary.BigEndian
	size := int64(int32(be.Uint32(data[atLength:]))) + frameSize
	offset := int64(be.Uint64(data))
	switch {
	case data[atMagic] == magic2 && size < HeaderSize:
		return nil, nil, fmt.Errorf("read batch at offset %d: a length of %d bytes", offset, size)
	case size > int64(len(data)):
		return nil, data, nil
	case offset < 0 || data[atMagic] != magic2:
		return nil, nil, fmt.Errorf("read batch at offset %d: format %d is not known", offset, data[atMagic])
	}
	b, rest := data[:size], data[size:]
	first = new(Batch)
	if sum := checksum(b[atAttributes:]); sum != be.Uint32(b[atCRC:]) {
		return nil, nil, fmt.Errorf("read batch at offset %d: checksum %08x, not %08x", offset, be.Uint32(b[atCRC:]), sum)
	}
	if err := first.UnsafeReadFrom(b); err != nil || first.LastOffsetDelta < 0 || first.NumRecords < 0 {
		return nil, nil, fmt.Errorf("read batch at offset %d: %d records up to delta %d", offset, first.NumRecords, first.LastOffsetDelta)
	}
	return first, rest, nil
}

// Entry is one record as it lies in a log. It is valid until the decoder's next step.
type Entry struct {
	Offset     int64
	Timestamp  int64
	Key, Value []byte // nil is null
	headers    []byte
	count      int32
}

// Header is the value of the last header with the name.
func (e *Entry) Header(name string) (value []byte, found bool) {
	for n, v := range e.Headers() {
		if string(n) == name {
			value, found = v, true
		}
	}
	return value, found
}

// Headers are the names and values, in their order. They were checked when the entry was read.
func (e *Entry) Headers() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		f := kbin.Reader{Src: e.headers}
		for range e.count {
			if name, value := f.VarintBytes(), f.VarintBytes(); !f.Ok() || !yield(name, value) {
				return
			}
		}
	}
}

// Decoder reads the records of batches. It keeps memory and the state of codecs between them, and is for one goroutine
// at a time.
type Decoder struct {
	limit int // of bytes of records in a batch
	buf   []byte
	zstd  *zstd.Decoder
	entry Entry
}

// NewDecoder returns a decoder that refuses batches of more than limit bytes of records.
func NewDecoder(limit int) *Decoder { return &Decoder{limit: limit} }

// Each calls f with each record of a batch, in order, until f or the batch fails.
func (d *Decoder) Each(b *Batch, f func(*Entry) error) error {
	if b.NumRecords == 0 {
		return nil
	}
	records, err := d.decompress(b.codec(), b.Records)
	if err != nil {
		return fmt.Errorf("read batch at offset %d: %w", b.FirstOffset, err)
	}
	rest := kbin.Reader{Src: records}
	for i := range b.NumRecords {
		if err := d.read(rest.VarintBytes(), b); err != nil {
			return fmt.Errorf("read batch at offset %d: record %d of %d: %w", b.FirstOffset, i, b.NumRecords, err)
		}
		if err := f(&d.entry); err != nil {
			return err
		}
	}
	if len(rest.Src) > 0 {
		return fmt.Errorf("read batch at offset %d: %w", b.FirstOffset, errTrailing)
	}
	return nil
}

func (d *Decoder) read(record []byte, b *Batch) error {
	f := kbin.Reader{Src: record}
	f.Int8() // attributes
	d.entry.Timestamp = b.FirstTimestamp + f.Varlong()
	d.entry.Offset = b.FirstOffset + int64(f.Varint())
	d.entry.Key = f.VarintBytes()
	d.entry.Value = f.VarintBytes()
	d.entry.count = f.VarintArrayLen()
	d.entry.headers = f.Src
	for range d.entry.count {
		if name := f.VarintBytes(); name == nil {
			return errShort
		}
		f.VarintBytes()
	}
	switch {
	case !f.Ok() || d.entry.count < 0:
		return errShort
	case len(f.Src) > 0:
		return errTrailing
	}
	return nil
}

var (
	errShort    = errors.New("it ends within a field")
	errTooLarge = errors.New("the records are larger than the limit")
)

// decompress returns the records of a batch. They are valid until the next call.
func (d *Decoder) decompress(codec Codec, src []byte) ([]byte, error) {
	var err error
	switch codec {
	case None:
		return src, nil
	case Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(src)); err == nil {
			d.buf, err = d.readAll(r)
		}
	case Snappy:
		d.buf, err = d.unsnap(src)
	case LZ4:
		d.buf, err = d.readAll(lz4.NewReader(bytes.NewReader(src)))
	case Zstd:
		if d.zstd == nil { // it cannot fail with a limit above 0
			d.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(d.limit)))
		}
		d.buf, err = d.zstd.DecodeAll(src, d.buf[:0])
	default:
		err = errors.New("unknown codec")
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", codec, err)
	}
	return d.buf, nil
}

func (d *Decoder) readAll(r interface{ Read(p []byte) (int, error) }) ([]byte, error) {
	out := bytes.NewBuffer(d.buf[:0])
	_, err := out.ReadFrom(&limited{r.Read, d.limit})
	return out.Bytes(), err
}

// limited ends with an error after the limit.
type limited struct {
	read func(p []byte) (int, error)
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.read(p[:min(len(p), l.left+1)])
	if l.left -= n; l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// unsnap reads snappy as it is, and in the framing that Java's producers and kafka-go put around its blocks. Memory
// grows with what comes: a block may claim any size.
func (d *Decoder) unsnap(src []byte) ([]byte, error) {
	for {
		out, err := xerial.DecodeCapped(d.buf[:0], src)
		if !errors.Is(err, xerial.ErrDstTooSmall) {
			return out, err
		}
		if cap(d.buf) >= d.limit {
			return nil, errTooLarge
		}
		d.buf = make([]byte, 0, min(d.limit, 2*cap(d.buf)+4*len(src)))
	}
}
