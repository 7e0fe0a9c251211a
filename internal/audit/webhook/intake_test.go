package webhook

import (
	"context"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// pushed notes what is pushed.
type pushed struct{ ids []string }

func (p *pushed) Push(_ context.Context, rec *change.Record) error {
	p.ids = append(p.ids, rec.ID("u").String()+" "+rec.Sink)
	return nil
}

func (p *pushed) Drain(context.Context) error { return nil }

func TestABatchThatComesAgainIsPutInLineOnce(t *testing.T) {
	line := &pushed{}
	in := newIntake(t.Context(), Config{}, line)
	stream := change.Actors()
	rec := func(id, sink string) *change.Record {
		return &change.Record{Stream: &stream, Op: change.Actor, Key: change.Key{Name: "a"}, UID: id, Sink: sink}
	}
	for range 2 {
		if err := in.push(t.Context(), []*change.Record{rec("x", "one"), rec("x", "two"), rec("y", "one")}); err != nil {
			t.Fatal(err)
		}
	}
	if len(line.ids) != 3 {
		t.Errorf("pushed %q", line.ids)
	}
}

func TestI6WhatIsRememberedIsBounded(t *testing.T) {
	in := newIntake(t.Context(), Config{}, nil)
	for i := range remembered + 2 {
		in.told.Add(digest{byte(i), byte(i >> 8), byte(i >> 16)}, struct{}{})
	}
	newest := digest{1, 0, 1} // behind 1<<16 others
	if in.told.Len() != remembered || !in.told.Contains(newest) || in.told.Contains(digest{1}) || !in.told.Contains(digest{2}) {
		t.Errorf("knows %d", in.told.Len())
	}
}
