package batch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

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

// compressor has what its codec keeps between batches. All are set to their cheapest levels: on objects of an API
// server, higher ones cost several times the CPU for a tenth of the bytes.
type compressor struct {
	codec Codec
	gzip  *gzip.Writer
	lz4   *lz4.Writer
	zstd  *zstd.Encoder
	sink  appender
}

func newCompressor(codec Codec) (compressor, error) {
	c := compressor{codec: codec}
	var err error
	switch codec {
	case None, Snappy:
	case Gzip:
		c.gzip, err = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	case LZ4:
		c.lz4 = lz4.NewWriter(nil)
		err = c.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1))
	case Zstd:
		// One encoder at a time uses it, and a batch is rarely above the window.
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	default:
		err = fmt.Errorf("unknown codec %d", uint8(codec))
	}
	return c, err
}

// compress appends the compressed src to dst.
func (c *compressor) compress(dst, src []byte) ([]byte, error) {
	switch c.codec {
	case Gzip:
		c.sink.b = dst
		c.gzip.Reset(&c.sink)
		return c.finish(c.gzip, src)
	case Snappy:
		// Java's reader takes a bare block as well as xerial's framing of blocks of 32 KiB, and the block is smaller.
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
		packed := s2.EncodeSnappy(dst[len(dst):cap(dst)], src)
		return dst[:len(dst)+len(packed)], nil
	case LZ4:
		c.sink.b = dst
		c.lz4.Reset(&c.sink)
		return c.finish(c.lz4, src)
	case Zstd:
		return c.zstd.EncodeAll(src, dst), nil
	}
	return append(dst, src...), nil
}

type writeCloser interface {
	Write(p []byte) (int, error)
	Close() error
}

func (c *compressor) finish(w writeCloser, src []byte) ([]byte, error) {
	_, err := w.Write(src)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	out := c.sink.b
	c.sink.b = nil
	return out, err
}

// appender is the writer that the streaming codecs write to.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
