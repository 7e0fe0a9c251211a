package typed_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/typed"
)

// TestDifferencesHaveTheirPlaces, in records, lists and maps.
func TestDifferencesHaveTheirPlaces(t *testing.T) {
	of := func(inner *typed.Type, more ...typed.Field) *typed.Type {
		return typed.NewRecord("T", append(more, typed.Field{JSON: "l", Type: &typed.Type{Kind: typed.List, Elem: inner}},
			typed.Field{JSON: "m", Type: &typed.Type{Kind: typed.Map, Elem: inner}}))
	}
	long, text := typed.Of(typed.Long), typed.Of(typed.String)
	older := of(typed.NewRecord("I", []typed.Field{{JSON: "a-b", Type: long}, {JSON: "same", Type: text}}), typed.Field{JSON: "gone", Type: long})
	newer := of(typed.NewRecord("I", []typed.Field{{JSON: "a-b", Type: text}, {JSON: "same", Type: text}}), typed.Field{JSON: "come", Type: typed.Of(typed.Time)})
	want := []typed.Difference{
		{Path: ".gone", Older: "integer"}, {Path: `.l[*]["a-b"]`, Older: "integer", Newer: "string"}, {Path: ".come", Newer: "time"},
	}
	if got := typed.Diff(older, newer); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestWhatIsMergedLacksNothing: every difference that is left is a column that stays.
func TestWhatIsMergedLacksNothing(t *testing.T) {
	for seed := range uint64(60) {
		w := world{rand.New(rand.NewPCG(seed, 29))}
		schemas := w.document()
		older, newer := typeIn(t, schemas), typeIn(t, w.changed(schemas))
		if found := typed.Diff(older, older); len(found) > 0 {
			t.Fatalf("seed %d: a type differs from itself: %+v", seed, found)
		}
		for _, d := range typed.Diff(typed.Merge(older, newer), newer) {
			if d.Older == "" {
				t.Errorf("seed %d: the merged type lacks %+v", seed, d)
			}
		}
	}
}
