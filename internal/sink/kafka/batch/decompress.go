package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

var (
	errShort    = errors.New("it ends within a field")
	errTooLarge = errors.New("the records are larger than the limit")
)

// decompressor keeps memory and state of the codecs between batches.
type decompressor struct {
	limit int
	buf   []byte
	zstd  *zstd.Decoder
}

// decompress returns the records of a batch. They are valid until the next call.
func (d *decompressor) decompress(codec Codec, src []byte) ([]byte, error) {
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
		d.buf, err = d.unzstd(src)
	default:
		err = errors.New("unknown codec")
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", codec, err)
	}
	return d.buf, nil
}

type reader interface{ Read(p []byte) (int, error) }

func (d *decompressor) readAll(r reader) ([]byte, error) {
	out := bytes.NewBuffer(d.buf[:0])
	n, err := out.ReadFrom(&limited{r: r, left: d.limit})
	if err == nil && n > int64(d.limit) {
		err = errTooLarge
	}
	return out.Bytes(), err
}

// limited ends with an error after the limit.
type limited struct {
	r    reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

func (d *decompressor) unzstd(src []byte) ([]byte, error) {
	if d.zstd == nil {
		var err error
		d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(d.limit)))
		if err != nil {
			return nil, err
		}
	}
	return d.zstd.DecodeAll(src, d.buf[:0])
}

// xerial is the magic of the framing that Java's producers and kafka-go put around snappy's blocks. Two version numbers
// follow it, and then the blocks, each after its size.
func xerial() []byte { return []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0} }

func (d *decompressor) unsnap(src []byte) ([]byte, error) {
	rest, framed := bytes.CutPrefix(src, xerial())
	if !framed {
		return d.unblock(d.buf[:0], src)
	}
	if len(rest) < 8 {
		return nil, errShort
	}
	out := d.buf[:0]
	for rest = rest[8:]; len(rest) > 0; {
		if len(rest) < 4 {
			return nil, errShort
		}
		size := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(size) > uint64(len(rest)) {
			return nil, errShort
		}
		var err error
		if out, err = d.unblock(out, rest[:size]); err != nil {
			return nil, err
		}
		rest = rest[size:]
	}
	return out, nil
}

// unblock appends the content of one block.
func (d *decompressor) unblock(dst, block []byte) ([]byte, error) {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	if size > d.limit-len(dst) {
		return nil, errTooLarge
	}
	end := len(dst) + size
	if cap(dst) < end {
		dst = append(make([]byte, 0, end), dst...)
	}
	if _, err := s2.Decode(dst[len(dst):end:end], block); err != nil {
		return nil, err
	}
	return dst[:end], nil
}
