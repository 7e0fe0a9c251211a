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
	subscribe, forget func(Source) error
	start             func(Source) // runs the source beside the others
	left              func(change.Stream)
	unsaved           func() map[string]time.Time
	due               func() []checkpoint.PendingSnapshot

	mu   sync.Mutex // guards the following
	held map[string]bool
}

// Holds says whether there is a stream of the name, or one that is just being forgotten.
func (set *StreamSet) Holds(stream string) bool {
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.held[stream]
}

// Join adds a stream and starts it, as if it had been there from the start: its sinks and their subscriptions are saved
// before its first record. An error leaves everything as it was.
func (set *StreamSet) Join(s Source) error {
	name := s.Stream.String()
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.held[name] {
		return fmt.Errorf("add stream %s: it is there already", name)
	}
	if err := set.subscribe(s); err != nil {
		return fmt.Errorf("add stream %s: %w", name, err)
	}
	set.held[name] = true
	set.start(s)
	return nil
}

// Unsaved is, by stream, when the oldest record was received that is not part of the saved state. The saved position is
// before it, so whoever reads the stream anew needs the API server's history from there on. A stream that waits for
// nothing is not in it.
func (set *StreamSet) Unsaved() map[string]time.Time { return set.unsaved() }

// leave forgets a stream that is over. It tries until ctx ends; what is left then is over again in the next life.
func (set *StreamSet) leave(ctx context.Context, s Source) {
	forget := func() error { return set.forget(s) }
	if backoff.Retry(forget, backoff.WithContext(delivery.RetryForever(), ctx)) != nil {
		return
	}
	set.mu.Lock()
	delete(set.held, s.Stream.String())
	set.mu.Unlock()
	set.left(s.Stream)
}

// Due are the full snapshots that the streams were asked for in this life and that are not read yet. Resyncs are among
// them, which are not saved.
func (set *StreamSet) Due() []checkpoint.PendingSnapshot { return set.due() }
