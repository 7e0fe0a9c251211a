package app

import (
	"context"
	"testing"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI7AStopWhileTheStateIsOpenedIsClean: nothing was in line.
func TestI7AStopWhileTheStateIsOpenedIsClean(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if store, err := openState(stopped, t.TempDir(), checkpoint.Options{}); store != nil || err != nil {
		t.Errorf("it opens %v, %v", store, err)
	}
}
