package source

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// A snapshot goes ahead of its sinks as far as they take in about maxWait: live changes wait after it for that long.
const (
	leastAhead = 64 << 10
	mostAhead  = 2 << 20
	minWait    = 10 * time.Millisecond
	maxWait    = 25 * time.Millisecond
)

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
