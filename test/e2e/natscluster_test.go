package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// newNATSCluster starts three NATS servers, and returns their addresses when they have found each other.
func newNATSCluster(t *testing.T) []string {
	t.Helper()
	var addresses []string
	for _, s := range natsserver.StartCluster(t, func(o *natsserver.Options) { o.MaxPayload = maxPayload }) {
		addresses = append(addresses, s.Addr().String())
	}
	streams := openStream(t, addresses...)
	eventually(t, patience, "the NATS servers have a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := streams.js.AccountInfo(ctx)
		return err == nil
	})
	return addresses
}

// followPatiently follows a stream of several servers. One that has just lost an election swallows the question, so
// that each attempt has a deadline of its own.
func followPatiently(log *streamLog) *follower {
	return &follower{
		name: "nats",
		more: func(ctx context.Context, have int) ([]event, error) {
			var events []event
			for {
				once, cancel := context.WithTimeout(ctx, 10*time.Second)
				found, err := log.read(once, uint64(have+len(events))+1)
				cancel()
				events = append(events, found...)
				if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
					return events, err
				}
			}
		},
		again: func() *follower { return followPatiently(log) },
	}
}
