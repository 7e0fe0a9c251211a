package harness

import (
	"context"
	"sync"
	"time"
)

// Each does the work for every number from one up to, not with, the other, with so many hands.
func Each(ctx context.Context, from, to, hands int, work func(i int) error) error {
	turns := func(give func(turn int) bool) {
		for i := from; i < to && give(i); i++ {
		}
	}
	return share(ctx, hands, turns, func(_, i int) error { return work(i) })
}

// Write lets so many hands write, so many times a second in all, until ctx ends or a write fails. It returns when each
// version was acknowledged. A write whose turn comes while all hands are full delays those after it.
func Write(
	ctx context.Context, rate, hands int, write func(hand, turn int) (version string, err error),
) (map[string]time.Time, error) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	turns := func(give func(turn int) bool) {
		for turn := 0; give(turn); turn++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
	var mu sync.Mutex
	acknowledged := map[string]time.Time{}
	return acknowledged, share(ctx, hands, turns, func(hand, turn int) error {
		version, err := write(hand, turn)
		at := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			acknowledged[version] = at
		}
		return err
	})
}

// share lets so many hands do the work of each turn that is given, until one fails or ctx ends. give says whether to go
// on.
func share(ctx context.Context, hands int, turns func(give func(turn int) bool), work func(hand, turn int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	given := make(chan int)
	failed := make(chan error, hands)
	var done sync.WaitGroup
	for hand := range hands {
		done.Go(func() {
			for turn := range given {
				if err := work(hand, turn); err != nil {
					failed <- err
					stop()
					return
				}
			}
		})
	}
	turns(func(turn int) bool {
		select {
		case <-ctx.Done():
			return false
		case given <- turn:
			return true
		}
	})
	close(given)
	done.Wait()
	close(failed)
	return <-failed
}
