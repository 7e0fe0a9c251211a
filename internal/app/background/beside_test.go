package background

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAStopWaitsForAll that run.
func TestAStopWaitsForAll(t *testing.T) {
	ended := make(chan int, 2)
	one := func(ctx context.Context) {
		<-ctx.Done()
		ended <- 1
	}
	Run(t.Context(), one, one)()
	if len(ended) != 2 {
		t.Errorf("%d have ended", len(ended))
	}
}
