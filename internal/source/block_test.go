package source

import (
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// TestI6AListedObjectCostsNoAllocation: a list may have millions of them. A piece of records is one for many.
func TestI6AListedObjectCostsNoAllocation(t *testing.T) {
	s := NewStream(Config{Observer: NopObserver(), Inventory: inventoryOf{}, ClusterUID: "e"})
	s.line = &countLine{}
	r := s.newRelist(change.Owed{Reason: change.Initial}, "9", nil)
	defer r.inventory.close()
	const n = 10 * blockRecords
	objects := make([]frame.Object, 0, 3*n)
	for i := range cap(objects) {
		objects = append(objects, frame.Object{Namespace: "shop", Name: strconv.Itoa(1e6 + i), UID: "u", ResourceVersion: "7"})
	}
	got := testing.AllocsPerRun(1, func() {
		for i := range objects[:n] {
			if err := r.listed(t.Context(), &objects[i]); err != nil {
				t.Fatal(err)
			}
		}
		objects = objects[n:]
	})
	if got > 2*n/blockRecords {
		t.Errorf("%v allocations for %d objects", got, n)
	}
}

// TestRecordsOfABlockAreTheirOwners gives out more than one piece has.
func TestRecordsOfABlockAreTheirOwners(t *testing.T) {
	var b block
	var all []*change.Record
	for i := range 3*blockRecords + 1 {
		rec := b.take()
		if rec.Seq != 0 {
			t.Fatalf("record %d was given out before", i)
		}
		rec.Seq = uint64(i + 1)
		all = append(all, rec)
	}
	for i, rec := range all {
		if rec.Seq != uint64(i+1) {
			t.Errorf("record %d became %d", i+1, rec.Seq)
		}
	}
}
