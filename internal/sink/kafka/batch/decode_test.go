package batch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const limit = 64 << 20

// read returns all records in the bytes.
func read(t testing.TB, data []byte) []Record {
	t.Helper()
	var records []Record
	d := NewDecoder(limit)
	for b, err := range All(data) {
		must(t, err)
		must(t, d.Each(b, func(e *Entry) error {
			r := Record{Timestamp: e.Timestamp, Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)}
			for name, value := range e.Headers() {
				r.Headers = append(r.Headers, Header{string(name), string(value)})
			}
			records = append(records, r)
			return nil
		}))
	}
	return records
}

func equal(t testing.TB, got, want []Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Key, w.Key) || !bytes.Equal(g.Value, w.Value) || (g.Key == nil) != (w.Key == nil) ||
			(g.Value == nil) != (w.Value == nil) || g.Timestamp != w.Timestamp || !slices.Equal(g.Headers, w.Headers) {
			t.Fatalf("record %d: got %.300v, want %.300v", i, g, w)
		}
	}
}

// TestDecodedIsWhatWasEncoded, thrice with one encoder, whose memory is used again. The decoder reads what
// others write.
func TestDecodedIsWhatWasEncoded(t *testing.T) {
	for codec := None; codec <= Zstd; codec++ {
		e := NewEncoder(codec)
		for _, n := range []int{300, 1, 40} {
			records := oddRecords(n)
			b := finish(t, e, records, Producer{ID: 9, Epoch: 2, Sequence: 77, Transactional: true})
			equal(t, read(t, b), records)
			p, rest, err := Read(b)
			if err != nil || len(rest) != 0 {
				t.Fatal(err, len(rest))
			}
			if p.ProducerID != 9 || p.ProducerEpoch != 2 || p.FirstSequence != 77 || !p.IsTransactional() || p.codec() != codec && n > 1 || p.End() != int64(n) || p.IsControl() {
				t.Errorf("%s: got producer %d, epoch %d, sequence %d, end %d, codec %s", codec, p.ProducerID, p.ProducerEpoch, p.FirstSequence, p.End(), p.codec())
			}
		}
	}
}

func TestWhatOthersEncodedIsDecoded(t *testing.T) {
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		records := oddRecords(200)
		slices.SortFunc(records, func(a, b Record) int { return int(a.Timestamp - b.Timestamp) })
		equal(t, read(t, theyEncode(t, protocol.Attributes(codec), records)), records)
	}
	equal(t, read(t, theirBatch(oddRecords(50), Producer{})), oddRecords(50))
}

func theyEncode(t *testing.T, attributes protocol.Attributes, records []Record) []byte {
	t.Helper()
	theirs := make([]protocol.Record, len(records))
	for i, r := range records {
		theirs[i] = protocol.Record{Time: time.UnixMilli(r.Timestamp), Offset: int64(i)}
		if r.Key != nil {
			theirs[i].Key = protocol.NewBytes(r.Key)
		}
		if r.Value != nil {
			theirs[i].Value = protocol.NewBytes(r.Value)
		}
		for _, h := range r.Headers {
			theirs[i].Headers = append(theirs[i].Headers, protocol.Header{Key: h.Name, Value: []byte(h.Value)})
		}
	}
	set := protocol.RecordSet{Version: 2, Attributes: attributes, Records: protocol.NewRecordReader(theirs...)}
	var out bytes.Buffer
	if _, err := set.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()[4:]
}

// TestLogOfAFetch has what a fetch answers with: batches of every kind, and one that is cut off.
func TestLogOfAFetch(t *testing.T) {
	one := encode(t, Snappy, oddRecords(10), Producer{ID: 1})
	log := slices.Concat(at(one, 5), emptyBatch(15), marker(20, 0), marker(21, 1), marker(22, 7), at(one, 30), one[:len(one)-1])
	type seen struct {
		offset, end int64
		count       int32
		control     bool
	}
	var got []seen
	for b, err := range All(log) {
		must(t, err)
		got = append(got, seen{offset: b.FirstOffset, end: b.End(), count: b.NumRecords, control: b.IsControl()})
	}
	want := []seen{
		{5, 15, 10, false}, {15, 20, 0, false}, {20, 21, 1, true}, {21, 22, 1, true}, {22, 23, 1, true}, {30, 40, 10, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// at is the batch as the broker stores it: the offset is no part of the checksum.
func at(b []byte, offset int64) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint64(b, uint64(offset))
	return b
}

// emptyBatch is what compaction leaves of five records of an idempotent producer.
func emptyBatch(offset int64) []byte {
	b := kmsg.RecordBatch{
		FirstOffset: offset, Length: HeaderSize - frameSize, Magic: 2, LastOffsetDelta: 4, ProducerID: 1, FirstSequence: 3,
	}
	return sealed(b.AppendTo(nil))
}

// marker is a control batch as the transaction coordinator writes it (KIP-98).
func marker(offset int64, kind byte) []byte {
	record := kmsg.Record{Key: []byte{0, 0, 0, kind}, Value: make([]byte, 6)}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	body := record.AppendTo(nil)
	b := kmsg.RecordBatch{
		FirstOffset: offset, Length: int32(HeaderSize - frameSize + len(body)), Magic: 2,
		Attributes: controlMask | transactionalMask, ProducerID: 1, FirstSequence: -1, NumRecords: 1, Records: body,
	}
	return sealed(b.AppendTo(nil))
}

func sealed(b []byte) []byte {
	binary.BigEndian.PutUint32(b[atCRC:], checksum(b[atAttributes:]))
	return b
}

func TestDamageIsAnError(t *testing.T) {
	good := encode(t, None, oddRecords(4), Producer{})
	for i := range good {
		if i < atMagic {
			continue // neither offset nor leader epoch are part of the checksum, and the length is judged by its batch
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		if i == atMagic {
			bad[i] = 3
		}
		if b, _, err := Read(bad); err == nil {
			t.Fatalf("byte %d: got %+v", i, b)
		}
	}
}

func TestLargeContentsAreRefused(t *testing.T) {
	record := []Record{{Value: make([]byte, 4<<20)}}
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		b, _, err := Read(encode(t, codec, record, Producer{}))
		if err != nil || b.codec() != codec {
			t.Fatal(b, err)
		}
		nothing := func(*Entry) error { return nil }
		if err := NewDecoder(1<<20).Each(b, nothing); err == nil {
			t.Errorf("%s: 4 MiB passed a limit of 1 MiB", codec)
		}
		if err := NewDecoder(limit).Each(b, nothing); err != nil {
			t.Errorf("%s: %v", codec, err)
		}
	}
}

func TestXerialFraming(t *testing.T) {
	framed := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
	for _, part := range []string{"first ", "second"} {
		block := s2.EncodeSnappy(nil, []byte(part))
		framed = append(binary.BigEndian.AppendUint32(framed, uint32(len(block))), block...)
	}
	d := NewDecoder(limit)
	if got, err := d.decompress(Snappy, framed); err != nil || string(got) != "first second" {
		t.Errorf("got %q, %v", got, err)
	}
	for n := range framed {
		if got, err := d.decompress(Snappy, framed[:n]); err == nil && string(got) == "first second" {
			t.Errorf("%d bytes of %d are enough", n, len(framed))
		}
	}
}

// FuzzRead feeds the reader with anything, also under a right checksum, so that what is after it is reached.
func FuzzRead(f *testing.F) {
	for codec := None; codec <= Zstd; codec++ {
		f.Add(encode(f, codec, oddRecords(5), Producer{ID: 1}), false)
	}
	f.Add(slices.Concat(emptyBatch(3), marker(8, 0), encode(f, None, oddRecords(1), Producer{})), true)
	f.Add(append(encode(f, None, oddRecords(1), Producer{}), 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 2), true)
	f.Fuzz(func(_ *testing.T, data []byte, seal bool) {
		if seal && len(data) >= HeaderSize {
			binary.BigEndian.PutUint32(data[atLength:], uint32(len(data)-frameSize))
			data[atMagic] = magic2
			sealed(data)
		}
		d := NewDecoder(1 << 20)
		for b, err := range All(data) {
			if err != nil {
				return
			}
			visit := func(e *Entry) error {
				e.Header("kubecdc-id")
				return nil
			}
			_ = d.Each(b, visit)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
