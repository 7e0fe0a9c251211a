package requests

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

var errTest = errors.New("cause")

// newTestHandler is a handler of sink all, with a pipeline behind it that saves what is heard as the real one does.
func newTestHandler(t *testing.T) *brokerHandler {
	t.Helper()
	c := twoSinks(nil)
	c.Request = func(_ context.Context, asked pipeline.Request) error {
		batch := checkpoint.Batch{Heard: asked.Heard}
		for _, part := range asked.Parts {
			for _, stream := range part.Streams {
				batch.PendingSnapshots = append(batch.PendingSnapshots,
					checkpoint.PendingSnapshot{Stream: stream, Owed: change.Owed{Sink: "all", Reason: change.Requested, Limits: part.Limits}})
			}
		}
		return c.Store.Commit(batch)
	}
	var err error
	if c.Store, err = checkpoint.Open(t.Context(), t.TempDir(), checkpoint.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Store.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := newBrokerHandler(c, "all")
	must(t, err)
	return d
}

// TestI5AQuestionIsFollowedOnce, also by the next life; one without an id each time.
func TestI5AQuestionIsFollowedOnce(t *testing.T) {
	d := newTestHandler(t)
	for range 2 {
		if _, err := d.snapshot(t.Context(), "", control.SnapshotRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.snapshot(t.Context(), "one", control.SnapshotRequest{}); err != nil {
		t.Fatal(err)
	}
	again, err := newBrokerHandler(d.Handler, "all")
	must(t, err)
	for _, life := range []*brokerHandler{d, again} {
		_, err := life.snapshot(t.Context(), "one", control.SnapshotRequest{})
		var repeated *control.RepeatedError
		if !errors.As(err, &repeated) || control.StatusOf(err) != 409 {
			t.Errorf("it is followed again: %v", err)
		}
	}
}

// TestI5WhatFailedAndIsSavedAllTheSameIsKnown: the pipeline may say that something failed after the commit.
func TestI5WhatFailedAndIsSavedAllTheSameIsKnown(t *testing.T) {
	d := newTestHandler(t)
	err := d.follow("one", d.book.With("one"), func(heard map[string][]byte) error {
		return errors.Join(d.Store.Commit(checkpoint.Batch{Heard: heard}), errTest)
	})
	if !errors.Is(err, errTest) || !d.book.Has("one") {
		t.Errorf("%v; known is %t", err, d.book.Has("one"))
	}
	if err := d.follow("two", d.book.With("two"), func(map[string][]byte) error { return errTest }); !errors.Is(err, errTest) || d.book.Has("two") {
		t.Errorf("what was not saved is known: %v", err)
	}
}

// TestI6NoMoreIsOwedThanSome to those who ask through brokers.
func TestI6NoMoreIsOwedThanSome(t *testing.T) {
	d := newTestHandler(t)
	batch := checkpoint.Batch{}
	for i := range mostOwed {
		batch.PendingSnapshots = append(batch.PendingSnapshots, checkpoint.PendingSnapshot{
			Stream: "pods", Owed: change.Owed{Sink: "all", Reason: change.Requested, Limits: change.Limits{Name: string(rune('a'+i%26)) + string(rune('a'+i/26))}},
		})
	}
	must(t, d.Store.Commit(batch))
	_, err := d.snapshot(t.Context(), "", control.SnapshotRequest{})
	var refused *control.RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("one more is owed: %v", err)
	}
}

// TestWhatIsHeardNoMoreIsForgotten, so that it begins anew when it is heard again.
func TestWhatIsHeardNoMoreIsForgotten(t *testing.T) {
	d := newTestHandler(t)
	must(t, d.Store.Commit(checkpoint.Batch{Heard: map[string][]byte{"all": []byte("{}"), "some": []byte("{}")}}))
	must(t, d.forgetHeard(map[string]bool{"all": true}))
	if left, err := d.Store.Hearing(); err != nil || len(left) != 1 || left[0] != "all" {
		t.Errorf("left are %q, %v", left, err)
	}
}
