package pipeline

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAQuestionDoesNotWaitForASinkThatDoesNotOpen: who asks is told so, and may ask again.
func TestAQuestionDoesNotWaitForASinkThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := make(Desk).Request(t.Context(), Request{}); !errors.Is(err, ErrNotStreaming) || time.Since(began) != askTime {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}
