package source

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// longestPace is how long a snapshot waits for its sinks before it looks how much is remembered.
const longestPace = 5 * time.Second

// part is a difference as one sink sees it.
type part struct {
	owed     change.Owed
	pace     pace
	snapshot *change.Snapshot // of the sink's own records
}

// awaitSoon waits until the part's sink has room for more, and not for long.
func (p *part) awaitSoon(ctx context.Context, sinks Takers, stream *change.Stream) (waited bool, err error) {
	soon, stop := context.WithTimeout(ctx, longestPace)
	defer stop()
	return sinks.Pace(soon, stream, p.owed.Sink, p.pace.limit())
}
