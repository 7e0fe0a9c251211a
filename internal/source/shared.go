package source

import (
	"context"
	"sync"
	"time"
)

// maxAge is how old an answer of the server may be that serves again: thousands of streams that begin together would
// ask the same question thousands of times.
const maxAge = time.Second

// shared is a question that all streams ask the server. One request at a time is under way, and serves everybody who
// waits for it or comes soon after.
type shared[T any] struct {
	mu     sync.Mutex
	flight *flight[T] // the newest request; nil before the first one
}

// freshness says which requests' answers are wanted.
type freshness struct {
	since  time.Time // they began later
	maxAge time.Duration
}

// has says whether a request that began then is one of them now.
func (f freshness) has(began time.Time) bool {
	return began.After(f.since) && time.Since(began) <= f.maxAge
}

// flight is one request and its answer.
type flight[T any] struct {
	began  time.Time
	done   chan struct{} // closed when the following are known
	answer T
	err    error
	called bool // off, with who asked
}

// get returns an answer that is fresh. ask is the request.
func (q *shared[T]) get(ctx context.Context, fresh freshness, ask func(context.Context) (T, error)) (answer T, err error) {
	for {
		f, mine := q.join(fresh)
		if mine {
			f.answer, f.err = ask(ctx)
			f.called = f.err != nil && ctx.Err() != nil
			close(f.done)
			return f.answer, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		}
		if !f.called && f.began.After(fresh.since) {
			return f.answer, f.err
		}
	}
}

// join returns the request to wait for, or a new one, which is the caller's to make.
func (q *shared[T]) join(fresh freshness) (f *flight[T], mine bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flight != nil && q.flight.serves(fresh) {
		return q.flight, false
	}
	q.flight = &flight[T]{began: time.Now(), done: make(chan struct{})}
	return q.flight, true
}

// serves says whether the request is worth waiting for. A failure serves those alone who waited for it.
func (f *flight[T]) serves(fresh freshness) bool {
	select {
	case <-f.done:
		return f.err == nil && fresh.has(f.began)
	default:
		return true
	}
}
