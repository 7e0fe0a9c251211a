package source

import (
	"context"
)

// reader gives snapshots beside the watch, in a goroutine of its own while there are any. The schedule guards it. The
// zero value is no reader.
type reader struct {
	stop context.CancelFunc // nil where none runs
	over chan struct{}      // closed when it is over
	cut  func()             // ends the snapshot that is read, at the end of a turn: see snapshots.go
}

// start begins to read.
func (r *reader) start(ctx context.Context, read func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	*r = reader{stop: stop, over: over}
	go func() {
		defer close(over)
		defer stop()
		read(ctx)
	}()
}

// end makes the reader end, if there is one.
func (r *reader) end() {
	if r.stop != nil {
		r.stop()
	}
}
