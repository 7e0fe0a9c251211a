package selection

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI4WhatIsOwedToNobodyWaits: a snapshot that a sink is owed is not made while the sink is not configured, and stays
// owed.
func TestI4WhatIsOwedToNobodyWaits(t *testing.T) {
	store, err := checkpoint.Open(t.Context(), t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	batch := checkpoint.Batch{}
	for _, name := range []string{"gone", "lake"} {
		batch.PendingSnapshots = append(batch.PendingSnapshots, checkpoint.PendingSnapshot{Stream: "pods", Owed: change.Owed{Sink: name, Reason: change.NewSink}})
	}
	if err := store.Commit(batch); err != nil {
		t.Fatal(err)
	}
	for want, configured := range map[int]func(string) bool{
		1: func(name string) bool { return name == "lake" },
		2: func(string) bool { return true },
	} {
		if saved, err := SavedOf(store, "pods", configured); err != nil || len(saved.Owed) != want {
			t.Errorf("%d snapshots are owed, want %d (%v)", len(saved.Owed), want, err)
		}
	}
}
