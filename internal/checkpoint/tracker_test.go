package checkpoint

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/kubecdc/kubecdc/internal/change"
)

// oracle is a tracker that is slow and obvious.
type oracle struct {
	records []*change.Record
	missing map[uint64]map[int]bool // by Seq: the listeners that have not acknowledged it
	wanted  map[uint64]map[int]bool
}

func newOracle() *oracle {
	return &oracle{missing: map[uint64]map[int]bool{}, wanted: map[uint64]map[int]bool{}}
}

func (o *oracle) add(rec *change.Record, wanted uint64) {
	o.records = append(o.records, rec)
	o.missing[rec.Seq], o.wanted[rec.Seq] = map[int]bool{}, map[int]bool{}
	for i := range MaxListeners {
		if wanted&(1<<i) != 0 {
			o.missing[rec.Seq][i], o.wanted[rec.Seq][i] = true, true
		}
	}
}

func (o *oracle) ack(listener int, seq uint64) bool {
	ok := o.missing[seq][listener]
	delete(o.missing[seq], listener)
	return ok
}

func (o *oracle) advance() []*change.Record {
	n := 0
	for n < len(o.records) && len(o.missing[o.records[n].Seq]) == 0 {
		delete(o.missing, o.records[n].Seq)
		n++
	}
	done := o.records[:n]
	o.records = o.records[n:]
	return done
}

// play runs the script on both and compares after every step.
func play(t *testing.T, script []byte) {
	tracker, slow := &Tracker{}, newOracle()
	var seq uint64
	for len(script) >= 2 {
		step, arg := script[0], script[1]
		script = script[2:]
		switch step % 4 {
		case 0, 1:
			seq += uint64(arg%3) + 1
			rec, wanted := &change.Record{Seq: seq}, wantedMask(arg)
			must(t, tracker.Add(rec, wanted))
			slow.add(rec, wanted)
		case 2:
			listener, at := int(step>>2)%5, seq-min(seq, uint64(arg))
			err := tracker.Ack(listener, at)
			if want := slow.ack(listener, at); (err == nil) != want {
				t.Fatalf("Ack(%d, %d) = %v, the oracle says %v", listener, at, err, want)
			}
		case 3:
			compareAdvance(t, tracker, slow)
		}
		compareFirst(t, tracker, slow)
	}
	compareAdvance(t, tracker, slow)
}

// wantedMask spreads a byte over listeners 0 to 3, and the last one.
func wantedMask(arg byte) uint64 { return uint64(arg>>2)&15 | uint64(arg>>6&1)<<63 }

func compareAdvance(t *testing.T, tracker *Tracker, slow *oracle) {
	t.Helper()
	got, want := tracker.Advance(nil), slow.advance()
	if len(got) != len(want) {
		t.Fatalf("Advance gives %d records, the oracle %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("Advance gives record %d at %d, the oracle %d", got[i].Seq, i, want[i].Seq)
		}
	}
}

func compareFirst(t *testing.T, tracker *Tracker, slow *oracle) {
	t.Helper()
	first, ok := tracker.First()
	if tracker.length != len(slow.records) || ok != (len(slow.records) > 0) || ok && first != slow.records[0].Seq {
		t.Fatalf("Len %d, First %d %v, the oracle has %d records", tracker.length, first, ok, len(slow.records))
	}
}

func TestI2TrackerAgreesWithOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		script := make([]byte, random.IntN(2000))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		play(t, script)
	}
}

func FuzzI2Tracker(f *testing.F) {
	f.Add([]byte{0, 255, 0, 12, 2, 0, 6, 0, 3, 0})
	f.Fuzz(play)
}

func TestI2GapHoldsThePrefix(t *testing.T) {
	var tracker Tracker
	for seq := uint64(1); seq <= 4; seq++ {
		must(t, tracker.Add(&change.Record{Seq: seq}, 0b11))
	}
	for _, seq := range []uint64{4, 3, 1} {
		must(t, tracker.Ack(0, seq))
		must(t, tracker.Ack(1, seq))
	}
	if got := tracker.Advance(nil); len(got) != 1 || got[0].Seq != 1 {
		t.Fatalf("with record 2 open, Advance gives %d records, want record 1 only", len(got))
	}
	must(t, tracker.Ack(0, 2))
	if got := tracker.Advance(nil); len(got) != 0 {
		t.Fatal("Advance passed record 2, which listener 1 has not acknowledged")
	}
	must(t, tracker.Ack(1, 2))
	if got := tracker.Advance(nil); len(got) != 3 {
		t.Fatalf("Advance gives %d records, want 3", len(got))
	}
}

func TestI1BrokenPromisesAreErrors(t *testing.T) {
	tracker := &Tracker{}
	must(t, tracker.Add(&change.Record{Seq: 5}, 0b1))
	must(t, tracker.Add(&change.Record{Seq: 7}, 0b10))
	must(t, tracker.Ack(0, 5))
	for want, err := range map[string]error{
		"record 7: it comes after record 7":  tracker.Add(&change.Record{Seq: 7}, 1),
		"record 5: listener 0 did so before": tracker.Ack(0, 5),
		"record 7: listener 0 does not want": tracker.Ack(0, 7),
		"not waited for (5 to 7 are)":        tracker.Ack(0, 6),
		"there is no listener 64":            tracker.Ack(64, 7),
		"there is no listener -1":            tracker.Ack(-1, 7),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestI6TrackerReleases: what is delivered is garbage, and a burst's ring does not stay.
func TestI6TrackerReleases(t *testing.T) {
	var tracker Tracker
	var refs []weak.Pointer[change.Record]
	for seq := uint64(1); seq <= 10_000; seq++ {
		rec := &change.Record{Seq: seq}
		refs = append(refs, weak.Make(rec))
		must(t, tracker.Add(rec, 1))
		must(t, tracker.Ack(0, seq))
	}
	tracker.Advance(nil)
	runtime.GC()
	for i, ref := range refs {
		if ref.Value() != nil {
			t.Fatalf("record %d is still held", i+1)
		}
	}
	for range 10 {
		tracker.Advance(nil)
	}
	if len(tracker.ring) != minRing {
		t.Errorf("the empty ring has %d slots, want %d", len(tracker.ring), minRing)
	}
	runtime.KeepAlive(&tracker)
}

func BenchmarkTracker(b *testing.B) {
	tracker, rec := &Tracker{}, make([]change.Record, 1000)
	var done []*change.Record
	var seq uint64
	cpu := cpuTime(b)
	for b.Loop() {
		for i := range rec {
			seq++
			rec[i].Seq = seq
			must(b, tracker.Add(&rec[i], 0b11))
		}
		for i := range rec {
			must(b, tracker.Ack(0, rec[i].Seq))
			must(b, tracker.Ack(1, rec[i].Seq))
		}
		done = tracker.Advance(done[:0])
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/1000, "cpu-ns/record")
}

// TestAllocations is a bound of what a record costs: a tracker that has grown to its work needs no more.
func TestAllocations(t *testing.T) {
	tracker, rec := &Tracker{}, &change.Record{}
	batch := make([]*change.Record, 0, 20)
	got := testing.AllocsPerRun(1000, func() {
		for range 20 {
			rec.Seq++
			if err := errors.Join(tracker.Add(rec, 1), tracker.Ack(0, rec.Seq)); err != nil {
				t.Fatal(err)
			}
			batch = tracker.Advance(batch[:0])
		}
	})
	if got > 0 {
		t.Errorf("%v allocations for 20 records", got)
	}
}

// Advance appends the records that it removes to dst, where nobody is excused.
func (t *Tracker) Advance(dst []*change.Record) []*change.Record {
	t.AdvanceOver(0, func(rec *change.Record, _ uint64) { dst = append(dst, rec) })
	return dst
}
