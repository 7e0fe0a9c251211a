package wire

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errClosed is what requests of a closed Cluster return.
var errClosed = errors.New("the connection to Kafka is closed")

// requests are those under way.
type requests struct {
	mu      sync.Mutex
	running map[*context.CancelFunc]struct{} // nil once closed
	idle    sync.WaitGroup                   // running, too, to wait for
}

// close ends all of them, and waits until they have ended.
func (r *requests) close() {
	r.mu.Lock()
	running := r.running
	r.running = nil
	r.mu.Unlock()
	for cancel := range running {
		(*cancel)()
	}
	r.idle.Wait()
}

// begin bounds a request and makes close wait for it.
func (r *requests) begin(ctx context.Context, timeout time.Duration) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	r.running[&cancel] = struct{}{}
	r.idle.Add(1)
	return ctx, func() {
		cancel()
		r.mu.Lock()
		delete(r.running, &cancel)
		r.mu.Unlock()
		r.idle.Done()
	}, nil
}

func (r *requests) closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running == nil
}
