package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// A snapshot goes ahead of its sinks as far as they take in about maxWait: live changes wait behind it for that long.
const (
	leastAhead = 64 << 10
	mostAhead  = 2 << 20
	minWait    = 10 * time.Millisecond
	maxWait    = 25 * time.Millisecond
)

// longestPace is how long a snapshot waits for its sinks before it looks how much is remembered.
const longestPace = 5 * time.Second

// pace is how many bytes of a snapshot may wait for a sink. The zero value is ready for use.
type pace struct{ ahead int }

// limit is how many may wait now.
func (p *pace) limit() int { return max(p.ahead, leastAhead) }

// waited notes how long it took until half of them were taken.
func (p *pace) waited(d time.Duration) {
	switch {
	case d < minWait:
		p.ahead = min(2*p.limit(), mostAhead)
	case d > maxWait:
		p.ahead = max(p.limit()/2, leastAhead)
	}
}

// Rate bounds how many objects full snapshots read in a second, whatever their streams. A nil Rate is no bound.
type Rate struct{ limiter *rate.Limiter }

// NewRate returns a bound of so many objects a second; 0 is none.
func NewRate(objectsPerSecond int) *Rate {
	if objectsPerSecond <= 0 {
		return nil
	}
	return &Rate{rate.NewLimiter(rate.Limit(objectsPerSecond), turnObjects)}
}

// wait returns when so many objects more may be read, at most as many as one turn compares, or with ctx's error.
func (r *Rate) wait(ctx context.Context, objects int) error {
	if r == nil {
		return nil
	}
	if err := r.limiter.WaitN(ctx, objects); err != nil {
		return fmt.Errorf("wait for the rate of snapshots: %w", err)
	}
	return nil
}

// awaitSinks returns when each sink that the snapshot is for has room for more of it. Nobody's turn is held meanwhile,
// so the watch goes on. That may take as long as what is on disk for a sink: it ends where too much is remembered of
// what the watch tells meanwhile (I6).
func (r *reading) awaitSinks(ctx context.Context) error {
	for _, p := range r.parts {
		for began, over := time.Now(), false; !over; {
			waited, err := r.awaitSoon(ctx, p)
			switch over = err == nil; {
			case ctx.Err() != nil:
				return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, context.Cause(ctx))
			case err != nil && !errors.Is(err, context.DeadlineExceeded):
				return fmt.Errorf("wait for the sinks of a snapshot of %s: %w", r.stream, err)
			case waited && over:
				p.pace.waited(time.Since(began))
			}
			if over {
				continue
			}
			if full, err := r.isFull(ctx); full || err != nil {
				return cmp.Or(err, errTooRecent)
			}
		}
	}
	return nil
}

// awaitSoon waits for the part's sink, and not for long.
func (r *reading) awaitSoon(ctx context.Context, p *part) (waited bool, err error) {
	soon, stop := context.WithTimeout(ctx, longestPace)
	defer stop()
	return r.line.Pace(soon, &r.stream, p.owed.Sink, p.pace.limit())
}
