package pipeline

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI2AMarkWaitsForWhatWasWrittenBeforeIt, whatever the numbers: a queue that coalesces gives a later batch the lower ones.
func TestI2AMarkWaitsForWhatWasWrittenBeforeIt(t *testing.T) {
	first := sinkOf("first", &memory{})
	first.Coalesce = true
	config := &Config{ClusterUID: clusterUID, Observer: NopObserver()}
	listeners := []*listener{newListener(0, first, config), newListener(1, sinkOf("second", &memory{}), config)}
	line := newLine(listeners)
	for _, lst := range listeners {
		lst.line = line
	}
	push := func(name string, version int) *change.Record {
		rec := update(pods(), name, version)
		if err := line.Push(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	push("a", 1)
	b, a := push("b", 2), push("a", 3) // which takes the first place
	acknowledge := func(listener int, mark sink.Mark, batch ...*change.Record) {
		listeners[listener].taken = batch
		if err := line.ack(listener, batch, mark); err != nil {
			t.Fatal(err)
		}
	}
	marks := func() map[string]sink.Mark {
		all := map[string]sink.Mark{}
		for _, p := range line.advance() {
			for name, mark := range p.marks {
				all[name] = mark
			}
		}
		return all
	}
	acknowledge(0, "1", a)
	acknowledge(0, "2", b)
	acknowledge(1, "2", listeners[1].queue.Oldest(), b)
	if got := marks(); got["first"] != "" {
		t.Errorf("the mark is %q although record %d lies before it and is not saved", got["first"], a.Seq)
	}
	acknowledge(1, "3", a)
	if got := marks(); got["first"] != "2" {
		t.Errorf("the mark is %q, want 2: all is saved", got["first"])
	}
}
