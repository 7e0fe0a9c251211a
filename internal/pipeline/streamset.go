package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/delivery"
)

// StreamSet is how streams come while a pipeline runs; they go by themselves, with ErrOver.
type StreamSet struct {
	enrol, forget func(Source) error
	start         func(Source) // runs the source beside the others
	left          func(change.Stream)
	unsaved       func() map[string]time.Time
	due           func() []checkpoint.PendingSnapshot

	mu   sync.Mutex // guards the following
	held map[string]bool
}

// Holds says whether there is a stream of the name, or one that is just being forgotten.
func (r *StreamSet) Holds(stream string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[stream]
}

// Join adds a stream and starts it, as if it had been there from the start: its sinks and their subscriptions are saved
// before its first record. An error leaves everything as it was.
func (r *StreamSet) Join(s Source) error {
	name := s.Stream.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[name] {
		return fmt.Errorf("add stream %s: it is there already", name)
	}
	if err := r.enrol(s); err != nil {
		return fmt.Errorf("add stream %s: %w", name, err)
	}
	r.held[name] = true
	r.start(s)
	return nil
}

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. The saved position is
// before it, so whoever reads the stream anew needs the API server's history from there on. A stream that waits for
// nothing is not in it.
func (r *StreamSet) Unsaved() map[string]time.Time { return r.unsaved() }

// leave forgets a stream that is over. It tries until ctx ends; what is left then is over again in the next life.
func (r *StreamSet) leave(ctx context.Context, s Source) {
	forget := func() error { return r.forget(s) }
	if backoff.Retry(forget, backoff.WithContext(delivery.RetryForever(), ctx)) != nil {
		return
	}
	r.mu.Lock()
	delete(r.held, s.Stream.String())
	r.mu.Unlock()
	r.left(s.Stream)
}

// Due are the full snapshots that the streams were asked for in this life and that are not read yet. Resyncs are among
// them, which are not saved.
func (r *StreamSet) Due() []checkpoint.PendingSnapshot { return r.due() }
