package pipeline

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI3WhatWentToDiskWithinAReconcileComesAgain: the position stands still meanwhile, and the inventory, which is
// ahead of it, says nothing of what a log may hold that was not read yet.
func TestI3WhatWentToDiskWithinAReconcileComesAgain(t *testing.T) {
	r := newRig(t, sinkOf("s", &memory{}))
	interrupted := change.Position{ResourceVersion: "7", Selector: change.Interrupted}
	stream := pods()
	for base, want := range map[change.Position]bool{
		{}: true, interrupted: false, {ResourceVersion: "7"}: false, {ResourceVersion: "6"}: false,
	} {
		if err := r.life(func(*Line) {
			if err := r.store.SetPosition(stream.String(), interrupted); err != nil {
				t.Error(err)
			}
			l := ledger{store: r.store}
			if base != (change.Position{}) {
				l.base = map[string]change.Position{stream.String(): base}
			}
			deleted := gone(stream, "a", 7) // and the inventory does not have it
			if got, err := l.settled(deleted.ID(clusterUID), &stream); err != nil || got != want {
				t.Errorf("with a base of %+v the delete is settled: %t, %v; want %t", base, got, err, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}
