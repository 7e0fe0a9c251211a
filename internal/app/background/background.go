package background

import (
	"context"
	"sync"
)

// Run lets all run, each in a goroutine, until ctx ends or the returned function is called, which waits for them.
func Run(ctx context.Context, all ...func(context.Context)) (stop func()) {
	running, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, one := range all {
		group.Go(func() { one(running) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}
