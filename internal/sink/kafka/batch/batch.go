package batch

import "hash/crc32"

// HeaderSize is the size of a batch without its records, in bytes.
const HeaderSize = 61

const (
	atLength     = 8
	atEpoch      = 12
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21
	atLastDelta  = 23
	atBaseTime   = 27
	atMaxTime    = 35
	atProducer   = 43
	atProdEpoch  = 51
	atSequence   = 53
	atCount      = 57

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
