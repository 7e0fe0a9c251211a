package fifo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func record(size int) *change.Record { return &change.Record{Object: make([]byte, size)} }

func reserveAndPush(q *Queue, rec *change.Record) bool {
	if !q.Reserve(rec.Size()) {
		return false
	}
	q.Push(rec)
	return true
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

// sizesOf is what so many of the records take.
func sizesOf(records []*change.Record, n int) (used Limit) {
	for _, rec := range records[:n] {
		used.Bytes += rec.Size()
		used.Records++
	}
	return used
}

// TestI3I6AQueueIsABoundedSlice holds a queue against a plain slice: it takes what fits by bytes and by records, and
// alone what is above the limit, which would block for ever. A pop is as much as fits a batch, and one record at least.
func TestI3I6AQueueIsABoundedSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	limit := Limit{Bytes: 50_000, Records: 40}
	q := NewQueue(limit)
	var want []*change.Record
	for range 20_000 {
		if rng.IntN(2) == 0 {
			rec := record(rng.IntN(100) * rng.IntN(100) * rng.IntN(8))
			next := append(want, rec)
			now := sizesOf(next, len(next))
			fits := len(want) == 0 || now.Bytes <= limit.Bytes && now.Records <= limit.Records
			if taken := reserveAndPush(q, rec); taken != fits {
				t.Fatalf("with %+v used, the record is taken %t", now, taken)
			}
			if fits {
				want = next
			}
		} else {
			most := Limit{Bytes: 1 + rng.IntN(60_000), Records: 1 + rng.IntN(8)}
			got := q.Pop(nil, most)
			fitting := min(1, len(want))
			for fitting < len(want) && fitting < most.Records && sizesOf(want, fitting+1).Bytes <= most.Bytes {
				fitting++
			}
			if !slices.Equal(got, want[:fitting]) {
				t.Fatalf("popped %d records for %+v, want %d", len(got), most, fitting)
			}
			want = want[fitting:]
		}
		if q.Len() != len(want) || q.Used() != sizesOf(want, len(want)) || len(want) > 0 && q.Oldest() != want[0] {
			t.Fatalf("the queue holds %d records in %+v, want %d", q.Len(), q.Used(), len(want))
		}
	}
}

// TestAllocations is a bound of what a record costs: a queue that has grown to its work needs no more.
func TestAllocations(t *testing.T) {
	q, rec := NewQueue(Limit{Bytes: 1 << 20, Records: 1000}), record(100)
	var batch []*change.Record
	got := testing.AllocsPerRun(1000, func() {
		for range 20 {
			if !reserveAndPush(q, rec) {
				t.Fatal("a record was refused")
			}
		}
		batch = q.Pop(batch[:0], Limit{Bytes: 1 << 20, Records: 1000})
	})
	if got > 0 || len(batch) != 20 {
		t.Errorf("%v allocations for %d records", got, len(batch))
	}
}
