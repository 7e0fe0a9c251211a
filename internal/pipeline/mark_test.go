package pipeline

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI2AMarkWaitsForWhatWasWrittenBeforeIt, whatever the numbers: a queue that coalesces gives a later batch the lower
// ones.
func TestI2AMarkWaitsForWhatWasWrittenBeforeIt(t *testing.T) {
	first := sinkOf("first", &memory{})
	first.Coalesce = true
	run := newRun(&Config{ClusterUID: clusterUID, Observer: NopObserver(), Sinks: []delivery.Sink{first, sinkOf("second", &memory{})}})
	line, listeners := run.line, run.listeners
	push := func(name string, version int) *change.Record {
		rec := update(pods(), name, version)
		if err := line.Push(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	oldest := push("a", 1)
	b, a := push("b", 2), push("a", 3) // which takes the first place
	acknowledge := func(listener int, mark sink.Mark, batch ...*change.Record) {
		if err := listeners[listener].Seat.Ack(batch, mark); err != nil {
			t.Fatal(err)
		}
	}
	marks := func() map[string]sink.Mark {
		all := map[string]sink.Mark{}
		for _, p := range line.Advance() {
			for name, mark := range p.Marks {
				all[name] = mark
			}
		}
		return all
	}
	acknowledge(0, "1", a)
	acknowledge(0, "2", b)
	acknowledge(1, "2", oldest, b)
	if got := marks(); got["first"] != "" {
		t.Errorf("the mark is %q although record %d lies before it and is not saved", got["first"], a.Seq)
	}
	acknowledge(1, "3", a)
	if got := marks(); got["first"] != "2" {
		t.Errorf("the mark is %q, want 2: all is saved", got["first"])
	}
}

// keeper notes the marks that it is told are saved.
type keeper struct {
	memory
	told []sink.Mark
}

func (k *keeper) Keep(saved sink.Mark) { k.told = append(k.told, saved) }

// TestI1ASinkIsToldOfTheSavedMark, so that it removes nothing that will be asked for; and of no mark that is not saved
// yet.
func TestI1ASinkIsToldOfTheSavedMark(t *testing.T) {
	target := &keeper{}
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		slow := sinkOf("slow", &memory{fault: func(context.Context, []sink.Message) error { <-hang; return nil }})
		r := newRig(t, sinkOf("s", target), slow)
		if err := r.life(func(line *Inlet) {
			for i := range 3 {
				r.push(line, update(pods(), "a", i+1))
				synctest.Wait()
			}
			close(hang)
			r.drain(line, pods())
			r.push(line, update(pods(), "a", 4))
			r.drain(line, pods())
		}); err != nil {
			t.Fatal(err)
		}
	})
	if got := fmt.Sprint(target.told); got != "[0 3]" {
		t.Errorf("told %s, want the mark of the start, and that of the three records when both sinks had them", got)
	}
}
