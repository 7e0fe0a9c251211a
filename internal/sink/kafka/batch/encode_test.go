package batch

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// oddRecords has every shape: null and empty keys and values, headers, times that go back, sizes around a varint's.
func oddRecords(n int) []Record {
	dice := rand.New(rand.NewPCG(7, 0))
	records := make([]Record, n)
	for i := range records {
		r := &records[i]
		r.Timestamp = 1_700_000_000_000 + int64(dice.IntN(4000)) - 2000
		switch i % 5 {
		case 0:
			r.Key, r.Value = []byte("shop/web"), bytes.Repeat([]byte(`{"a":1},`), dice.IntN(40))
		case 1:
			r.Key = []byte("ünï-☃") // a tombstone
		case 2:
			r.Value = []byte("no key")
		case 3:
			r.Key, r.Value = []byte{}, []byte{}
		case 4:
			r.Key, r.Value = []byte{0, 255}, make([]byte, []int{62, 63, 64, 127, 128, 8191, 8192, 70_000}[dice.IntN(8)])
		}
		for h := range i % 4 {
			r.Headers = append(r.Headers, Header{Name: fmt.Sprint("h", h), Value: strings.Repeat("v", dice.IntN(100)*h)})
		}
	}
	return records
}

func encode(t testing.TB, codec Codec, records []Record, p Producer) []byte {
	t.Helper()
	return finish(t, NewEncoder(codec), records, p)
}

func finish(t testing.TB, e *Encoder, records []Record, p Producer) []byte {
	t.Helper()
	for i := range records {
		before := e.Size()
		e.Add(&records[i])
		if grown := e.Size() - before; grown > sizeBound(&records[i]) {
			t.Fatalf("record %d took %d bytes, and its bound is %d", i, grown, sizeBound(&records[i]))
		}
	}
	return e.Finish(nil, p)
}

// sizeBound is at least what the record adds to a batch without compression, in bytes.
func sizeBound(r *Record) int {
	const longest = 10 + 1 + 10 + 5 + 5 + 5 + 5 // every number of a record at its largest
	n := longest + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 10 + len(r.Headers[i].Name) + len(r.Headers[i].Value)
	}
	return n
}

func TestGoldenBatch(t *testing.T) {
	records := []Record{
		{Key: []byte("a/b"), Value: []byte("{}"), Headers: []Header{{"kubecdc-id", "x"}}, Timestamp: 1_700_000_000_123},
		{Key: []byte("a/b"), Timestamp: 1_700_000_000_120},
	}
	got := hex.EncodeToString(encode(t, None, records, Producer{ID: 4711, Epoch: 3, Sequence: 42, Transactional: true}))
	const want = "0000000000000000" + "00000054" + "ffffffff" + "02" + "36953dcf" + "0010" + "00000001" +
		"0000018bcfe5687b" + "0000018bcfe5687b" + "0000000000001267" + "0003" + "0000002a" + "00000002" +
		"30" + "00" + "00" + "00" + "06612f62" + "047b7d" + "02" + "146b7562656364632d6964" + "0278" +
		"12" + "00" + "05" + "02" + "06612f62" + "01" + "00"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestEncodedIsWhatOthersEncode compares with the bytes of another implementation, record by record.
func TestEncodedIsWhatOthersEncode(t *testing.T) {
	records := oddRecords(300)
	p := Producer{ID: math.MaxInt64, Epoch: math.MaxInt16, Sequence: math.MaxInt32}
	got, want := encode(t, None, records, p), theirBatch(records, p)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes differ from the other encoder's %d", len(got), len(want))
	}
}

func theirBatch(records []Record, p Producer) []byte {
	var body []byte
	last := int64(0)
	for i, r := range records {
		record := kmsg.Record{
			TimestampDelta64: r.Timestamp - records[0].Timestamp, OffsetDelta: int32(i), Key: r.Key, Value: r.Value,
		}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kmsg.Header{Key: h.Name, Value: []byte(h.Value)})
		}
		record.Length = int32(len(record.AppendTo(nil)) - 1)
		body = record.AppendTo(body)
		last = max(last, r.Timestamp)
	}
	b := kmsg.RecordBatch{
		Length: int32(HeaderSize - frameSize + len(body)), PartitionLeaderEpoch: -1, Magic: 2,
		LastOffsetDelta: int32(len(records) - 1), FirstTimestamp: records[0].Timestamp, MaxTimestamp: last,
		ProducerID: p.ID, ProducerEpoch: p.Epoch, FirstSequence: p.Sequence, NumRecords: int32(len(records)), Records: body,
	}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[atCRC:], checksum(out[atAttributes:]))
	return out
}

func TestWhatDoesNotCompressStaysAsItIs(t *testing.T) {
	noise := make([]byte, 1000)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(dice.Uint32())
	}
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		b := encode(t, codec, []Record{{Key: noise[:10], Value: noise}}, Producer{})
		read, _, err := Read(b)
		if err != nil || read.codec() != None {
			t.Errorf("%s: codec %s, %v", codec, read.codec(), err)
		}
	}
}

func TestSequencesWrap(t *testing.T) {
	for _, c := range []struct {
		from int32
		n    int
		want int32
	}{{0, 5, 5}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 2, 5, 2}, {math.MaxInt32 - 1, 1, math.MaxInt32}} {
		if got := NextSequence(c.from, c.n); got != c.want {
			t.Errorf("%d after %d: got %d, want %d", c.n, c.from, got, c.want)
		}
	}
}

func TestEncodingInSpareMemoryAllocatesNothing(t *testing.T) {
	for _, codec := range []Codec{None, Snappy, Zstd} {
		e, records, spare := NewEncoder(codec), oddRecords(50), []byte(nil)
		round := func() {
			for i := range records {
				e.Add(&records[i])
			}
			spare = e.Finish(spare, Producer{})
		}
		round()
		round()
		round()
		if n := testing.AllocsPerRun(20, round); n > 0 {
			t.Errorf("%s: %v allocations for a batch of 50", codec, n)
		}
	}
}
