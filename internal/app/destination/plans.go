package destination

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/registry"
)

// Plans say what a run would do about the schemas of a sink's records. To ask changes nothing.
type Plans struct{ schemas *registry.Schemas }

// NewPlans is nil where the sink has no registry.
func NewPlans(s *config.Sink, c *cluster.Cluster) (*Plans, error) {
	d, err := Of(s, c)
	if err != nil || d.Registry == nil {
		return nil, err
	}
	schemas, err := schemasOf(s, c, d, Nop{})
	return &Plans{schemas}, err
}

// Of is the plan of the resource. There may be one beside an error: of a version that the registry would refuse.
func (p *Plans) Of(ctx context.Context, resource *change.Resource) (*registry.Plan, error) {
	return p.schemas.Plan(ctx, resource)
}
