package checkpoint

import (
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI5WhatAMarkCarriesIsTheMarks: it comes and goes with its mark.
func TestI5WhatAMarkCarriesIsTheMarks(t *testing.T) {
	s := open(t, t.TempDir())
	commit := func(mark sink.Mark, carried map[string]Carried) {
		t.Helper()
		if err := s.Commit(Batch{Marks: map[string]sink.Mark{"a": mark}, Carried: carried}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(from sink.Mark, ids ...string) {
		t.Helper()
		got, err := s.Carried("a")
		if err != nil || got.From != from || !slices.Equal(got.IDs, ids) {
			t.Errorf("carries %q from %q, %v, want %q from %q", got.IDs, got.From, err, ids, from)
		}
	}
	expect("")
	commit("m2", map[string]Carried{"a": {IDs: []string{"x", "", "y/z"}, From: "m1"}})
	expect("m1", "x", "", "y/z")
	commit("m2", nil)
	expect("m1", "x", "", "y/z")
	commit("m3", nil)
	expect("")
	commit("m4", map[string]Carried{"a": {IDs: []string{"x"}, From: "m3"}})
	commit("m5", map[string]Carried{"a": {}})
	commit("m4", nil)
	expect("")
	commit("m6", map[string]Carried{"a": {IDs: []string{"x"}, From: "m5"}})
	must(t, s.Retain(nil))
	commit("m6", nil) // of a new sink
	expect("")
}
