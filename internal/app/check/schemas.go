package check

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// mostFailures bounds how often one registry is asked in vain.
const mostFailures = 5

// checkSchemas looks whether the sink's registry takes the schemas of all resources that the sink takes, and registers
// none.
func checkSchemas(ctx context.Context, s *config.Sink, at sink.Mark, c *cluster.Cluster, r *report) {
	if c.Rest == nil {
		return // that there is no cluster is told
	}
	planned, err := destination.NewPlan(s, c)
	if err != nil {
		r.problem(fmt.Errorf("sink %s: %w", s.Name, err))
		return
	}
	if planned == nil {
		return
	}
	wants := c.WantedBy(s)
	asked, adds, failures := map[string]bool{}, 0, 0
	for _, one := range c.StreamsThat(func(s *selection.Selected) bool { return wants == nil || wants(&s.Stream) }) {
		resource := one.Stream.Resource
		if asked[resource.String()] || failures == mostFailures {
			continue
		}
		asked[resource.String()] = true
		plan, err := planned(ctx, &one.Stream, at)
		if err != nil {
			failures++
			r.problem(fmt.Errorf("sink %s: resource %s: %w", s.Name, resource.String(), err))
		} else if plan.Adds {
			adds++
		}
	}
	if failures == 0 && len(asked) > 0 {
		r.ok(fmt.Sprintf("sink %s: schema registry, %d resources, %d new versions", s.Name, len(asked), adds))
	}
}
