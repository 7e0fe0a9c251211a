package pipeline

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Source is one stream of records.
type Source struct {
	Stream change.Stream
	// Run pushes the stream's records into the line until ctx ends, and returns then; no goroutine of its own is
	// left. ErrOver ends the stream alone; any other error ends the whole run.
	Run func(ctx context.Context, inlet *Inlet) error
	// Request asks for full snapshots, each for one sink. It returns at once. What is asked for at once and for the
	// same reason may share a list.
	Request func(owed ...change.Owed)
	// Withdraw, where set, makes full snapshots due no more. One that is read is over soon, and has no end.
	Withdraw func(owed ...change.Owed)
	// Due, where set, are those that it was asked for and that are not read yet.
	Due func() []change.Owed
	// Shape, where set, decides whether a record goes on that the pipeline makes itself: a delete without its object.
	// It may mark it as filtered. It must be safe for concurrent use.
	Shape func(rec *change.Record)
}

// ErrOver is what a Source's Run returns when its stream is over: the sinks know that everything of it is gone. The
// pipeline forgets the stream then, and goes on with the others.
var ErrOver = errors.New("the stream is over")
