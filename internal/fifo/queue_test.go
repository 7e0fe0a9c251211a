package fifo

import (
	"math/rand/v2"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func record(size int) *change.Record { return &change.Record{Object: make([]byte, size)} }

func reserveAndPush(q *Queue, n *Numberer, rec *change.Record) bool {
	if !q.Reserve(rec.Size()) {
		return false
	}
	n.Number(rec)
	q.Push(rec, false)
	return true
}

func TestI6QueueIsBoundedByBytesAndByRecords(t *testing.T) {
	one := record(1000).Size()
	for name, limit := range map[string]Limit{
		"bytes":   {Bytes: 3 * one, Records: 100},
		"records": {Bytes: 100 * one, Records: 3},
	} {
		t.Run(name, func(t *testing.T) {
			q, n := NewQueue(limit), new(Numberer)
			for i := range 3 {
				if !reserveAndPush(q, n, record(1000)) {
					t.Fatalf("record %d of 3 was refused", i+1)
				}
			}
			if q.Reserve(one) {
				t.Fatal("a fourth record was taken")
			}
			q.Pop(nil, Limit{Bytes: one, Records: 1})
			if !q.Reserve(one) {
				t.Fatal("no room after a pop")
			}
		})
	}
}

func TestI6RecordAboveTheLimitPassesAlone(t *testing.T) {
	q, n := NewQueue(Limit{Bytes: 1000, Records: 10}), new(Numberer)
	if !reserveAndPush(q, n, record(5000)) {
		t.Fatal("a record above the limit was refused by an empty queue: it would block for ever")
	}
	if q.Reserve(1) {
		t.Fatal("a second record was taken beside one that fills the queue")
	}
	if got := q.Pop(nil, Limit{Bytes: 1, Records: 1}); len(got) != 1 {
		t.Fatalf("popped %d records, want the one that is above the batch limit", len(got))
	}
	if used := q.Used(); used != (Limit{}) {
		t.Fatalf("an empty queue holds %+v", used)
	}
}

func TestI6CancelledReservationFreesItsRoom(t *testing.T) {
	q := NewQueue(Limit{Bytes: 100, Records: 1})
	if !q.Reserve(50) || q.Reserve(1) {
		t.Fatal("want one reservation taken and the next refused")
	}
	q.Cancel(50)
	if !q.Reserve(100) {
		t.Fatal("the cancelled room is not free")
	}
}

// The oracle is a plain slice.
func TestI3QueueKeepsOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	q, n := NewQueue(Limit{Bytes: 50_000, Records: 40}), new(Numberer)
	var want []uint64
	for range 20_000 {
		if rng.IntN(2) == 0 {
			rec := record(rng.IntN(3000))
			if reserveAndPush(q, n, rec) {
				want = append(want, rec.Seq)
			}
			continue
		}
		most := Limit{Bytes: 1 + rng.IntN(9000), Records: 1 + rng.IntN(8)}
		for _, rec := range q.Pop(nil, most) {
			if rec.Seq != want[0] {
				t.Fatalf("popped seq %d, want %d", rec.Seq, want[0])
			}
			want = want[1:]
		}
		if q.Len() != len(want) {
			t.Fatalf("queue holds %d records, want %d", q.Len(), len(want))
		}
		if oldest := q.Oldest(); len(want) > 0 && oldest.Seq != want[0] {
			t.Fatalf("oldest is %d, want %d", oldest.Seq, want[0])
		}
	}
}

func TestPopStaysWithinTheBatchLimit(t *testing.T) {
	q, n := NewQueue(Limit{Bytes: 1 << 20, Records: 100}), new(Numberer)
	for range 10 {
		reserveAndPush(q, n, record(1000))
	}
	one := record(1000).Size()
	if got := q.Pop(nil, Limit{Bytes: 3*one + 1, Records: 100}); len(got) != 3 {
		t.Errorf("popped %d records by bytes, want 3", len(got))
	}
	if got := q.Pop(nil, Limit{Bytes: 1 << 20, Records: 4}); len(got) != 4 {
		t.Errorf("popped %d records by count, want 4", len(got))
	}
}

// TestAllocations is a bound of what a record costs: a queue that has grown to its work needs no more.
func TestAllocations(t *testing.T) {
	q, n, rec := NewQueue(Limit{Bytes: 1 << 20, Records: 1000}), new(Numberer), record(100)
	var batch []*change.Record
	got := testing.AllocsPerRun(1000, func() {
		for range 20 {
			if !reserveAndPush(q, n, rec) {
				t.Fatal("a record was refused")
			}
		}
		batch = q.Pop(batch[:0], Limit{Bytes: 1 << 20, Records: 1000})
	})
	if got > 0 || len(batch) != 20 {
		t.Errorf("%v allocations for %d records", got, len(batch))
	}
}
