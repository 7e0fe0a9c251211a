package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestI3LastWordsOfAKilledProcessAreNotRepeated: the network still held a batch of it when the next one opened the
// sink. That batch comes into the log before the next one's first, which fails therefore. The run ends, and the next
// one reads a log that has all of it.
func TestI3LastWordsOfAKilledProcessAreNotRepeated(t *testing.T) {
	target, other := &memory{}, &memory{}
	r := newRig(t, sinkOf("s", target), sinkOf("other", other))
	first := update(pods(), "a", 1)
	if err := r.life(func(line *Inlet) {
		r.push(line, first)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	late := []string{idOf(update(pods(), "b", 3)), idOf(update(pods(), "b", 4))}
	target.fault = func(context.Context, []sink.Message) error {
		target.fault = nil
		target.log = slices.Concat(target.log, late)
		return &sink.LateError{Err: errors.New("a message came after the log was opened")}
	}
	err := r.life(func(line *Inlet) {
		r.push(line, update(services(), "x", 5))
	})
	if !delivery.IsLate(err) {
		t.Fatalf("the run ends with %v", err)
	}
	err = r.life(func(line *Inlet) {
		r.push(line, update(services(), "x", 5), update(pods(), "a", 2), update(pods(), "b", 3), update(pods(), "b", 4), update(pods(), "c", 6))
		r.drain(line, pods())
		r.drain(line, services())
	})
	if want := "a/1/updated b/3/updated b/4/updated x/5/updated a/2/updated c/6/updated"; err != nil || target.short() != want {
		t.Errorf("%v; log %s, want %s", err, target.short(), want)
	}
	if want := "a/1/updated x/5/updated a/2/updated b/3/updated b/4/updated c/6/updated"; other.short() != want {
		t.Errorf("the other log is %s, want %s", other.short(), want)
	}
}
