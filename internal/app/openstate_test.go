package app

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI7AStopWhileTheStateIsOpenedIsClean: nothing was in line, and the directory is free when the opening is over,
// which nobody waits for.
func TestI7AStopWhileTheStateIsOpenedIsClean(t *testing.T) {
	dir := t.TempDir()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if store, err := openState(stopped, dir, checkpoint.Options{}); store != nil || err != nil {
		t.Errorf("it opens %v, %v", store, err)
	}
	store, err := openState(t.Context(), dir, checkpoint.Options{})
	for inUse := (*checkpoint.InUseError)(nil); errors.As(err, &inUse); runtime.Gosched() {
		store, err = openState(t.Context(), dir, checkpoint.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
