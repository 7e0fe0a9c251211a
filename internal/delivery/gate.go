package delivery

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// gateLook is how often is looked whether the sink has become one that nobody waits for.
const gateLook = time.Second

// awaitGate returns when records of the stream can be encoded, or with ctx's error. Nobody waits for a sink that is
// stopped or away: what is queued for it is encoded when it is back.
func (i *intake) awaitGate(ctx context.Context, stream *change.Stream) error {
	for i.Gate != nil {
		changed := i.Gate.Changed()
		if i.Gate.Admits(stream) || i.is(func(s state) bool { return s.away || s.halted }) {
			return nil
		}
		look := time.NewTimer(gateLook)
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			look.Stop()
			return context.Cause(ctx)
		}
		look.Stop()
	}
	return nil
}
