package checkpoint

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// maxFrame is the longest text that is believed of a frame, in bytes: one record passes whatever its size, and etcd
// takes none above a few megabytes.
const maxFrame = 1 << 30

// window is how far back a frame may point. An encoder that is told to take less memory moves all of it with every
// block of 128 KiB, which takes as long as all else that it does.
const window = 1 << 20

// zipper makes and reads zstd frames (RFC 8878). The zero value is ready for use, by several goroutines.
type zipper struct {
	once    sync.Once
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	err     error
}

// start makes both directions when the first is needed: their tables take a few megabytes.
func (z *zipper) start() error {
	z.once.Do(func() {
		z.encoder, z.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(false))
		if z.err == nil {
			z.decoder, z.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
		}
	})
	return z.err
}

// zip appends a frame of the text to dst.
func (z *zipper) zip(dst, text []byte) ([]byte, error) {
	if err := z.start(); err != nil {
		return nil, err
	}
	return z.encoder.EncodeAll(text, dst), nil
}

// unzip is the inverse of zip, with the size that dst has room for.
func (z *zipper) unzip(dst, frame []byte) ([]byte, error) {
	if err := z.start(); err != nil {
		return nil, err
	}
	return z.decoder.DecodeAll(frame, dst)
}
