package checkpoint

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// spooler is a sink's spool as a pipeline keeps it.
type spooler struct {
	t      *testing.T
	s      *Store
	sink   string
	extent fifo.Spool
}

func (p *spooler) put(part fifo.Part, records ...*change.Record) {
	p.t.Helper()
	value, err := p.s.Encode(records)
	must(p.t, err)
	e := &p.extent[part]
	chunk := fifo.Chunk{Part: part, Number: e.Next, Value: value}
	e.Next++
	e.Bytes += int64(len(value))
	e.Records += int64(len(records))
	must(p.t, p.s.SaveSinks(nil, Spools{p.sink: {[]fifo.Chunk{chunk}, p.extent}}, nil))
}

// take reads and removes.
func (p *spooler) take(bytes, records int) []*change.Record {
	p.t.Helper()
	read, err := p.s.ReadSpool(p.sink, &p.extent, bytes, records)
	must(p.t, err)
	must(p.t, p.s.SaveSinks(nil, Spools{p.sink: {Extent: p.extent}}, nil))
	return read
}

func versions(records []*change.Record) string {
	var all []string
	for _, rec := range records {
		all = append(all, rec.ResourceVersion)
	}
	return strings.Join(all, " ")
}

// TestI9NothingOfWhatWasDeliveredStaysOnDisk: it may have values that today's rules redact.
func TestI9NothingOfWhatWasDeliveredStaysOnDisk(t *testing.T) {
	s := open(t, t.TempDir())
	p := &spooler{t: t, s: s, sink: "lake"}
	for round := range 3 {
		for n := range 3 {
			p.put(fifo.Main, object(change.Added, "web", "u", strconv.Itoa(round*3+n+1)))
		}
		for range 3 {
			p.take(1, 1)
		}
		if has, err := s.holds(keyOf(tableSpool, "lake", "")); err != nil || has {
			t.Errorf("round %d: all is delivered, and the state still has a chunk: %v, %v", round, has, err)
		}
	}
}

func TestI1SpooledRecordsReadBackAsTheyWere(t *testing.T) {
	s := open(t, t.TempDir())
	snapshot := &change.Snapshot{
		ID: "9.1", Reason: change.Lost, From: "3", Since: time.Unix(5, 6).UTC(), ResourceVersion: "9", Epoch: "e",
		Sinks: []string{"lake"}, Limits: change.Limits{Namespace: "shop", Selector: "a=b"},
	}
	ended := *snapshot
	ended.Counts = change.Counts{Synced: 2}
	records := []*change.Record{
		object(change.Added, "web", "u", "1"),
		{Stream: secrets, Op: change.Deleted, Key: change.Key{Name: "a"}, FinalStateUnknown: true, Received: time.Unix(1, 2).UTC()},
		{Stream: pods, Op: change.Sync, Key: change.Key{Name: "b"}, Snapshot: snapshot, Sink: "lake", Epoch: "other", Object: []byte(`{}`)},
		{Stream: pods, Op: change.Sync, Key: change.Key{Name: "c"}, Snapshot: snapshot, Sink: "lake", Object: []byte{}},
		{Stream: pods, Op: change.SnapshotEnd, Snapshot: &ended},
		{Stream: pods, Op: change.Updated, Key: change.Key{Name: "d"}, Object: []byte(`{"v":2}`), Before: []byte(`{"v":1}`)},
		{Stream: pods, Op: change.Deleted, Key: change.Key{Name: "d"}, Before: []byte(`{"v":2}`), FinalStateUnknown: true},
		{Stream: pods, Op: change.Replaced, Key: change.Key{Name: "e"}, Snapshot: snapshot, Object: []byte(`{}`), Before: []byte{}, Last: true},
		{Stream: pods, Op: change.Updated, Key: change.Key{Name: "f"}, Object: []byte(`{}`), Withheld: "filter", Received: time.Unix(7, 8).UTC()},
		{Stream: pods, Op: change.Added, Key: change.Key{Name: "g"}, Object: []byte(`{"v":3}`), Before: []byte(`{}`), Withheld: "redact", Last: true},
		{Stream: pods, Op: change.Updated, Key: change.Key{Name: "h"}, Object: []byte(`{}`), Actor: []byte(`[{"manager":"m"}]`), DuringSnapshot: true},
		{Stream: pods, Op: change.Added, Key: change.Key{Name: "i"}, Object: []byte(`{}`), Involved: []byte(`{"labels":{"app":"web"}}`)},
	}
	value, err := s.Encode(records)
	must(t, err)
	read, err := s.codec.decode(nil, value)
	must(t, err)
	if len(read) != len(records) {
		t.Fatalf("read %d records of %d", len(read), len(records))
	}
	for i, rec := range records {
		if !reflect.DeepEqual(read[i], rec) {
			t.Errorf("read %+v, want %+v", *read[i], *rec)
		}
	}
}

// TestI5ChunksShareMemoryWithNone makes chunks one after the other in the same memory: of few records and of many
// streams, whose names take more than the room before the records, and of a record that nothing else has room for.
func TestI5ChunksShareMemoryWithNone(t *testing.T) {
	c := &codec{}
	var chunks [][]*change.Record
	for i := range 60 {
		var records []*change.Record
		for j := range 1 + i*7%90 {
			rec := object(change.Updated, fmt.Sprintf("web-%d", j), "u", strconv.Itoa(1000*i+j))
			if rec.Object = bytes.Repeat(fmt.Appendf(nil, "%d/%d ", i, j), 1+i*j%500); i%20 == 19 && j == 0 {
				rec.Object = bytes.Repeat([]byte("large"), 4<<20)
			}
			if i%3 == 0 {
				rec.Stream = &change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: fmt.Sprintf("widgets%d", j)}}
			}
			records = append(records, rec)
		}
		chunks = append(chunks, records)
	}
	values := make([][]byte, len(chunks))
	for i, records := range chunks {
		var err error
		values[i], err = c.encode(records)
		must(t, err)
	}
	for i, records := range chunks {
		read, err := c.decode(nil, values[i])
		must(t, err)
		if len(read) != len(records) {
			t.Fatalf("chunk %d has %d records, want %d", i, len(read), len(records))
		}
		for j, rec := range read {
			if !reflect.DeepEqual(rec, records[j]) {
				t.Fatalf("record %d of chunk %d came back as %s %s of %s", j, i, rec.Key, rec.ResourceVersion, rec.Stream)
			}
		}
	}
}

func FuzzChunksAreReadOrRefused(f *testing.F) {
	c := &codec{}
	value, err := c.encode([]*change.Record{object(change.Added, "web", "u", "1"), object(change.Deleted, "web", "u", "2")})
	must(f, err)
	f.Add(value)
	f.Fuzz(func(t *testing.T, value []byte) {
		if size, _, _, err := chunkSize(value); err == nil && size > 1<<20 {
			t.Skip("a large chunk")
		}
		records, err := c.decode(nil, value)
		if err != nil {
			return
		}
		if _, err := c.encode(records); err != nil {
			t.Fatal(err)
		}
	})
}

func TestI3SpoolIsReadInOrderAheadFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	p := &spooler{t: t, s: s, sink: "lake"}
	other := &spooler{t: t, s: s, sink: "lake2"}
	for i := range 4 {
		p.put(fifo.Main, object(change.Updated, "web", "u", strconv.Itoa(10+2*i)), object(change.Updated, "web", "u", strconv.Itoa(11+2*i)))
	}
	other.put(fifo.Main, object(change.Updated, "web", "u", "99"))
	p.put(fifo.Ahead, object(change.Updated, "web", "u", "8"))
	p.put(fifo.Ahead, object(change.Updated, "web", "u", "9"))
	must(t, s.Close())
	s = open(t, dir)
	p.s, p.extent = s, fifo.Spool{}
	var err error
	p.extent, err = s.Spool("lake")
	must(t, err)
	if p.extent.Records() != 10 {
		t.Errorf("the spool holds %d records, want 10", p.extent.Records())
	}
	for _, want := range []string{"8 9 10 11", "12 13 14 15", "16 17"} {
		if got := versions(p.take(1<<20, 4)); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
	}
	if !p.extent.Empty() || p.extent.Bytes() != 0 || p.extent.Records() != 0 {
		t.Errorf("an empty spool is %+v", p.extent)
	}
	other.s = s
	if got := versions(other.take(1<<20, 100)); got != "99" {
		t.Errorf("another sink's spool holds %s", got)
	}
}

func TestI6SpoolOfASinkThatLeftIsGone(t *testing.T) {
	s := open(t, t.TempDir())
	lake, bus := &spooler{t: t, s: s, sink: "lake"}, &spooler{t: t, s: s, sink: "bus"}
	lake.put(fifo.Main, object(change.Updated, "web", "u", "1"))
	bus.put(fifo.Main, object(change.Updated, "web", "u", "1"))
	must(t, s.Forget("lake"))
	if spool, err := s.Spool("lake"); err != nil || spool != (fifo.Spool{}) {
		t.Errorf("the spool of a sink that left is %+v, %v", spool, err)
	}
	n := 0
	must(t, s.each([]byte{tableSpool}, func(key, _ []byte) error { n++; return nil }))
	if n != 1 {
		t.Errorf("%d chunks are left", n)
	}
	if got := versions(bus.take(1<<20, 9)); got != "1" {
		t.Errorf("the spool of the other holds %q", got)
	}
}

// TestI5ASinkThatCouldNotBeForgottenKeepsItsSpool, as where the disk is full.
func TestI5ASinkThatCouldNotBeForgottenKeepsItsSpool(t *testing.T) {
	dir, vol := t.TempDir(), &volume{}
	vol.free.Store(1 << 40)
	s, err := Open(t.Context(), dir, Options{Logger: quiet(), usage: vol.usage})
	must(t, err)
	lake := &spooler{t: t, s: s, sink: "lake"}
	lake.put(fifo.Main, object(change.Updated, "web", "u", "1"))
	vol.free.Store(0)
	if err := s.Forget("lake"); err == nil {
		t.Error("the disk is full, and the sink is forgotten")
	}
	vol.free.Store(1 << 40)
	must(t, s.Close())
	lake.s = open(t, dir)
	if got := versions(lake.take(1<<20, 9)); got != "1" {
		t.Errorf("the spool holds %q", got)
	}
}

// The bytes of what was read come back, and a state that was cut open again opens (I5).
func TestI6SpaceOfTheSpoolComesBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	p := &spooler{t: t, s: s, sink: "lake"}
	random := rand.NewChaCha8([32]byte{1})
	for i := range 60 {
		rec := object(change.Updated, "web", "u", strconv.Itoa(i+1))
		rec.Object = make([]byte, 1<<20)
		if _, err := random.Read(rec.Object); err != nil {
			t.Fatal(err)
		}
		p.put(fifo.Main, rec)
	}
	full := sizeOf(t, dir)
	for i := range 60 {
		if got := versions(p.take(1, 1)); got != strconv.Itoa(i+1) {
			t.Fatalf("read %s, want %d", got, i+1)
		}
	}
	must(t, s.Close())
	s = open(t, dir)
	if spool, err := s.Spool("lake"); err != nil || !spool.Empty() {
		t.Errorf("the spool is %+v, %v", spool, err)
	}
	must(t, s.Close())
	if left := sizeOf(t, dir); left > full/2 {
		t.Errorf("%d MiB are left of %d", left>>20, full>>20)
	}
}

func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && strings.HasSuffix(entry.Name(), ".sst") {
			size += info.Size()
		}
		return nil
	}))
	return size
}
