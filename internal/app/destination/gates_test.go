package destination

import (
	"context"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// toyGate admits all, and says when it runs and when it has ended.
type toyGate struct{ runs, ended chan struct{} }

func (toyGate) Admits(*change.Stream) bool { return true }

func (toyGate) Changed() <-chan struct{} { return nil }

func (g toyGate) Run(ctx context.Context) {
	close(g.runs)
	<-ctx.Done()
	close(g.ended)
}

// stillGate has nothing to do.
type stillGate struct{ listener.Gate }

// TestAnyGateWithSomethingToDoIsRun, also while what is queued at the end is delivered.
func TestAnyGateWithSomethingToDoIsRun(t *testing.T) {
	gate := toyGate{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	stop := RunGates(ctx, []listener.Sink{{}, {Gate: stillGate{}}, {Gate: gate}})
	<-gate.runs
	cancel()
	select {
	case <-gate.ended:
		t.Error("the gate ended with the sources, before what is queued is delivered")
	default:
	}
	stop()
	<-gate.ended
}
