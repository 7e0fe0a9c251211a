package destination

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Plans say what a run would do about the schemas of a sink's records. To ask changes nothing.
type Plans struct {
	schemas *registry.Schemas
	goesOn  func(at sink.Mark, stream *change.Stream, keys uint32) error
}

// NewPlans is nil where the sink has no registry.
func NewPlans(s *config.Sink, c *cluster.Cluster) (*Plans, error) {
	d, err := Of(s, c)
	if err != nil || d.Registry == nil {
		return nil, err
	}
	schemas, err := schemasOf(s, c, d, Nop{})
	return &Plans{schemas, d.goesOn}, err
}

// Of is the plan of the stream's resource. There may be one beside an error: of a version that the registry would
// refuse, or of keys that do not go on with those that the sink has at the mark.
func (p *Plans) Of(ctx context.Context, stream *change.Stream, at sink.Mark) (*registry.Plan, error) {
	plan, err := p.schemas.Plan(ctx, &stream.Resource)
	if err == nil {
		err = p.goesOn(at, stream, plan.Key)
	}
	return plan, err
}
