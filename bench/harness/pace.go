package harness

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Write lets so many hands write, so many times a second in all, until ctx ends or a write fails. It returns when each
// version was acknowledged. A write whose turn comes while all hands are full delays those after it.
func Write(
	ctx context.Context, rate, hands int, write func(hand, turn int) (version string, err error),
) (map[string]time.Time, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	turns := make(chan int)
	var mu sync.Mutex
	acknowledged := map[string]time.Time{}
	var failed error
	var done sync.WaitGroup
	for hand := range hands {
		done.Go(func() {
			for turn := range turns {
				version, err := write(hand, turn)
				at := time.Now()
				mu.Lock()
				if failed = errors.Join(failed, err); err == nil {
					acknowledged[version] = at
				}
				mu.Unlock()
				if err != nil {
					stop()
				}
			}
		})
	}
	pace(ctx, rate, turns)
	close(turns)
	done.Wait()
	return acknowledged, failed
}

// pace gives so many turns a second until ctx ends. One that nobody takes delays those after it.
func pace(ctx context.Context, rate int, turns chan<- int) {
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
