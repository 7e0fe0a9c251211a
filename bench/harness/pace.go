package harness

import (
	"context"
	"time"
)

// Pace gives so many turns a second until ctx ends. One that nobody takes delays those after it.
func Pace(ctx context.Context, rate int, turns chan<- int) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case turns <- turn:
		case <-ctx.Done():
			return
		}
	}
}
