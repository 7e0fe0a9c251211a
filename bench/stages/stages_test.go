package main

import (
	"math"
	"testing"
)

// What a stage allocates an event is exact, where its time is not. Of one that takes batches, a share of what the batch
// allocates is each event's: on a busy machine batches are smaller, so the least of three runs counts.
func TestStagesAllocateWhatTheyMust(t *testing.T) {
	most := map[string]float64{
		"decode":      0.1,  // objects lie together in slabs
		"list_decode": 0.25, // so do those of a list; a page costs a little
		"queue":       0.01, // its ring
		"distribute":  1.05, // the record, which is made here in place of the source
		"encode":      1.01, // what a message says of the object, in one piece
		"file_append": 0.1,
		"commit":      0.1,
	}
	set, err := newSetup(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, one := range set.stages() {
		const events = 40 * batchSize
		got := math.Inf(1)
		for range 3 {
			got = min(got, testing.AllocsPerRun(1, func() { one.events(t, events) })/events)
		}
		limit, known := most[one.name]
		if !known || got > limit {
			t.Errorf("stage %s allocates %.3f times an event, want at most %.3f", one.name, got, limit)
		}
	}
}
