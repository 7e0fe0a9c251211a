package delivery

import (
	"context"
)

// below is line.Member's Below.
func (i *intake) below(ctx context.Context, bytes int) (waited bool, err error) {
	for {
		i.mu.Lock()
		reached, freed, gone := i.state.away || i.backlog.IsBelow(bytes), i.freed, i.gone
		i.mu.Unlock()
		if reached {
			return waited, nil
		}
		if !waited {
			waited, bytes = true, bytes/2
		}
		select {
		case <-freed:
		case <-gone:
		case <-ctx.Done():
			return waited, context.Cause(ctx)
		}
	}
}
