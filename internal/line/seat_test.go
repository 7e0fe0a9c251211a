package line

import (
	"context"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// idle is a listener that nothing is asked of.
type idle struct{}

func (idle) Reserve(context.Context, *change.Record) error                        { return nil }
func (idle) Cancel(int)                                                           {}
func (idle) Enter(*change.Record, bool) (superfluous []*change.Record, wake bool) { return nil, false }
func (idle) State() DiskState                                                     { return DiskState{} }
func (idle) Spill(*change.Record) bool                                            { return false }
func (idle) Chunks() []fifo.Chunk                                                 { return nil }
func (idle) SpillNow() bool                                                       { return false }
func (idle) LetGo()                                                               {}
func (idle) Overcommit(bool)                                                      {}

// TestI3WhatIsBeingSavedSupersedes: what the committer has in its hands is neither waited for nor saved.
func TestI3WhatIsBeingSavedSupersedes(t *testing.T) {
	line := New([]Member{{Name: "s", Recovery: &Recovery{}, Queue: idle{}, Disk: idle{}, Patience: idle{}}}, Options{})
	stream := pods()
	rec := &change.Record{Stream: &stream, Op: change.Updated, Key: change.Key{Name: "a"}, Filtered: true}
	newest := func() *change.Record {
		return line.Seat(0).Newest("pods", func(other *change.Record) bool { return other.Key == rec.Key })
	}
	if err := line.Push(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if newest() != rec {
		t.Error("what is in line is not found")
	}
	given := line.Advance()
	if newest() != rec {
		t.Error("what the committer has in its hands is not found")
	}
	if line.Saved(given[0]); newest() != nil {
		t.Error("what is saved is found")
	}
}
