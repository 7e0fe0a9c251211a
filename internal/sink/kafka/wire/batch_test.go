package wire

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch is a record batch of format 2, made by franz-go's encoder.
type batch struct {
	Producer
	sequence      int32
	transactional bool
	values        []string
	noKey         bool
	time          time.Time // zero: now
}

func (b batch) bytes() []byte {
	at := b.time
	if at.IsZero() {
		at = time.Now()
	}
	var records []byte
	for i, value := range b.values {
		record := kmsg.Record{OffsetDelta: int32(i), Key: []byte("key"), Value: []byte(value)}
		if b.noKey {
			record.Key = nil
		}
		record.Length = int32(len(record.AppendTo(nil)) - 1)
		records = record.AppendTo(records)
	}
	whole := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(len(b.values) - 1),
		FirstTimestamp: at.UnixMilli(), MaxTimestamp: at.UnixMilli(), ProducerID: b.ID, ProducerEpoch: b.Epoch, FirstSequence: b.sequence,
		NumRecords: int32(len(b.values)), Records: records}
	if b.transactional {
		whole.Attributes |= 1 << 4
	}
	whole.Length = int32(49 + len(records))
	raw := whole.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// fetched are the values in Records, batch by batch, with the batches' producers; "control" stands for a marker.
func fetched(raw []byte) []string {
	var values []string
	for len(raw) >= 12 {
		size := 12 + int(binary.BigEndian.Uint32(raw[8:]))
		if size > len(raw) {
			return append(values, "cut off")
		}
		var whole kmsg.RecordBatch
		if err := whole.ReadFrom(raw[:size]); err != nil {
			return append(values, err.Error())
		}
		raw = raw[size:]
		if whole.Attributes&(1<<5) != 0 {
			values = append(values, "control")
			continue
		}
		records := whole.Records
		for range whole.NumRecords {
			length, n := binary.Varint(records)
			var record kmsg.Record
			if err := record.ReadFrom(records[:n+int(length)]); err != nil {
				return append(values, err.Error())
			}
			values = append(values, string(record.Value))
			records = records[n+int(length):]
		}
	}
	return values
}
