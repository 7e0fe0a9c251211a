package destination

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// runner is a sink's gate that has to do something for its answers.
type runner interface {
	// Run does it until ctx ends.
	Run(ctx context.Context)
}

// RunGates runs the sinks' gates that have something to do until the returned stop, which waits.
func RunGates(ctx context.Context, sinks []listener.Sink) (stop func()) {
	var all []func(context.Context)
	for i := range sinks {
		if gate, runs := sinks[i].Gate.(runner); runs {
			all = append(all, gate.Run)
		}
	}
	return beside.Run(context.WithoutCancel(ctx), all...) // what is queued at the end is delivered, too
}
