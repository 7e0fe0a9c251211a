package control

import (
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

func pending(sinkName, stream string, reason change.Reason, generation uint64) checkpoint.PendingSnapshot {
	return checkpoint.PendingSnapshot{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason, Generation: generation}}
}

// TestResyncsAreListedThoughTheyAreNotSaved, and nothing is twice.
func TestResyncsAreListedThoughTheyAreNotSaved(t *testing.T) {
	saved := pending("bus", "pods", change.Requested, 1)
	due := []checkpoint.PendingSnapshot{
		pending("lake", "pods", change.Resync, 0), pending("bus", "pods", change.Requested, 1), pending("bus", "nodes", change.Resync, 0),
	}
	got := ""
	for _, o := range WithDue([]Owed{OwedOf(&saved)}, due) {
		got += fmt.Sprintln(o.ID, o.Sink, o.Stream, o.Reason)
	}
	want := fmt.Sprintln(due[2].ID(), "bus nodes resync") + fmt.Sprintln(saved.ID(), "bus pods requested") + fmt.Sprintln(due[0].ID(), "lake pods resync")
	if got != want {
		t.Errorf("listed\n%s\nwant\n%s", got, want)
	}
}
