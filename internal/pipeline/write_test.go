package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// tombstones is an encoder that appends a message without a value to each delete.
type tombstones struct{ delivery.Encoder }

func (e tombstones) Encode(ctx context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	dst, err := e.Encoder.Encode(ctx, dst, rec)
	if err == nil && rec.Op == change.Deleted {
		dst = append(dst, sink.Message{ID: dst[len(dst)-1].ID, Op: "deleted"})
	}
	return dst, err
}

// A rejection names a message; with two of a record the places of messages and records differ.
func TestI4RejectedMessageIsItsRecord(t *testing.T) {
	fault, entered, open := gate()
	target := &memory{}
	target.fault = func(ctx context.Context, batch []sink.Message) error {
		if err := fault(ctx, batch); err != nil {
			return err
		}
		for i, message := range batch {
			if id, _ := change.ParseID(message.ID); id.Key.Name == "huge" && id.Op != change.Gap {
				return &sink.RejectedError{Index: i, Reason: "too_large", Err: errors.New("above the limit")}
			}
		}
		return nil
	}
	s := sinkOf("s", target)
	s.Encoder = tombstones{s.Encoder}
	r := newRig(t, s)
	deleted := func(name string, version int) *change.Record {
		rec := update(pods(), name, version)
		rec.Op = change.Deleted
		return rec
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "first", 1))
		<-entered // what follows is one batch
		r.push(line, deleted("a", 2), deleted("b", 3), deleted("huge", 4), update(pods(), "huge", 5), deleted("c", 6))
		close(open)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	const want = "first/1/updated a/2/deleted a/2/deleted b/3/deleted b/3/deleted huge/4/gap huge/5/gap c/6/deleted c/6/deleted"
	if got := target.short(); got != want {
		t.Errorf("log is %s, want %s", got, want)
	}
}

// A bucket holds the newest record of an object alone. What of a failed batch was written before it does not come again
// after it: an object that is gone would be back.
func TestI3NothingOfAFailedBatchComesBehindItsNewerRecord(t *testing.T) {
	target, hold, failed := &memory{}, make(chan struct{}), false
	target.fault = func(_ context.Context, batch []sink.Message) error {
		<-hold // until all of them are queued
		at := slices.IndexFunc(batch, func(m sink.Message) bool { return m.Op == "deleted" })
		if failed || at < 0 {
			return nil
		}
		failed = true
		target.append(batch[at : at+1]) // both are written, and the delete takes the update's place
		return errors.New("no answer")
	}
	r := newRig(t, sinkOf("s", target))
	if err := r.life(func(line *Inlet) {
		gone, next := update(pods(), "a", 3), update(pods(), "b", 4)
		gone.Op = change.Deleted
		r.push(line, update(pods(), "z", 1), update(pods(), "a", 2), gone, next)
		close(hold)
		r.drain(line, pods())
	}); err != nil {
		t.Fatal(err)
	}
	if got := target.short(); !failed || strings.Contains(got, "a/2") || strings.Count(got, " ") != 2 {
		t.Errorf("log %s, want z/1, a/3 and b/4", got)
	}
}
