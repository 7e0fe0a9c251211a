package destination

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Plan says what a run would do about the schemas of a stream's records, and changes nothing. There may be one beside
// an error: of a version that the registry would refuse, or of keys that do not go on with those that the sink has at
// the mark.
type Plan func(ctx context.Context, stream *change.Stream, at sink.Mark) (*registry.Plan, error)

// NewPlan is nil where the sink has no registry.
func NewPlan(s *config.Sink, c *cluster.Cluster) (Plan, error) {
	d, err := Of(s, c)
	if err != nil || d.Registry == nil {
		return nil, err
	}
	schemas, err := schemasOf(s, c, d, Nop{})
	return func(ctx context.Context, stream *change.Stream, at sink.Mark) (*registry.Plan, error) {
		plan, err := schemas.Plan(ctx, &stream.Resource)
		if err == nil {
			err = d.goesOn(at, stream, plan.Key)
		}
		return plan, err
	}, err
}
