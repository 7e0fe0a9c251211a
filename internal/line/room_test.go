package line

import (
	"context"
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

func TestI6RecordsThatAreNotSavedAreBounded(t *testing.T) {
	line, stream := New(nil, Options{}), pods()
	bookmark := func() *change.Record { return &change.Record{Stream: &stream, Op: change.Bookmark} }
	for range windowLimit(nil).Records {
		if err := line.Push(t.Context(), bookmark()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gave up"))
	if err := line.Push(ctx, bookmark()); err == nil || err.Error() != "gave up" {
		t.Errorf("one more was taken: %v", err)
	}
	for _, p := range line.Advance() {
		line.Saved(p)
	}
	if err := line.Push(t.Context(), bookmark()); err != nil {
		t.Error(err)
	}
}
