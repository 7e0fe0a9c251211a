package check

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/config"
)

// checkHearer looks whether others can ask through the sink's broker, where they may.
func checkHearer(ctx context.Context, s *config.Sink, c *cluster.Cluster, r *report) {
	to, err := destination.Of(s, c)
	if err != nil || to.Hearer == nil {
		return // what is wrong is told
	}
	h, err := to.Hearer(requests.Shut())
	if err == nil {
		err = h.Check(ctx)
	}
	if err != nil {
		r.problem(fmt.Errorf("sink %s: %w", s.Name, err))
	}
}
