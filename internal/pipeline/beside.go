package pipeline

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Beside is a stream that nobody can read again: its records have no positions, and are of no object. A sink that is
// absent misses them, and is not told of them when it is back: it has no snapshot to come back with.
type Beside struct {
	Stream change.Stream
	// Run pushes the stream's records into the line until ctx ends, and returns then. An error ends the whole run.
	Run func(ctx context.Context, inlet *Inlet) error
}
