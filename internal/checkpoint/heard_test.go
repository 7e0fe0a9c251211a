package checkpoint

import (
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI5WhatWasHeardIsSavedWithWhatWasAskedFor, over a crash, and forgotten with its sink.
func TestI5WhatWasHeardIsSavedWithWhatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	asked := owe("lake", "pods", change.Requested)
	must(t, s.Commit(Batch{PendingSnapshots: []PendingSnapshot{asked}, Heard: map[string][]byte{"lake": []byte("1"), "bus": []byte("2")}}))
	must(t, s.Commit(Batch{Steered: []PendingSnapshot{asked}, Steering: Stop, Heard: map[string][]byte{"lake": []byte("3")}}))
	must(t, s.Close())
	s = open(t, dir)
	wantPending(t, s)
	wantHeard(t, s, "lake", "3")
	wantHeard(t, s, "bus", "2")
	must(t, s.Commit(Batch{Heard: map[string][]byte{"bus": nil}}))
	wantHeard(t, s, "bus", "")
	if names, err := s.Hearing(); err != nil || !slices.Equal(names, []string{"lake"}) {
		t.Errorf("something was heard through %q, %v", names, err)
	}
	must(t, s.Forget("lake"))
	wantHeard(t, s, "lake", "")
}

func wantHeard(t *testing.T, s *Store, sinkName, want string) {
	t.Helper()
	if got, err := s.Heard(sinkName); err != nil || string(got) != want {
		t.Errorf("through %s was heard %q, %v; want %q", sinkName, got, err, want)
	}
}
