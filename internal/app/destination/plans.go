package destination

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/registry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
)

// Plans say what a run would do about the schemas of a sink's records. To ask changes nothing.
type Plans struct {
	schemas *registry.Schemas
	routes  encode.Routes
}

// NewPlans is nil where the sink has no registry.
func NewPlans(s *config.Sink, c *cluster.Cluster) (*Plans, error) {
	d, err := Of(s, c)
	if err != nil || d.Registry == nil {
		return nil, err
	}
	schemas, err := schemasOf(s, c, d, Nop{})
	routes, _ := d.routes.(encode.Routes)
	return &Plans{schemas, routes}, err
}

// Of is the plan of the stream's resource. There may be one beside an error: of a version that the registry would
// refuse, or of keys that do not go on with those that the sink has at the mark.
func (p *Plans) Of(ctx context.Context, stream *change.Stream, at sink.Mark) (*registry.Plan, error) {
	plan, err := p.schemas.Plan(ctx, &stream.Resource)
	if topic, isTopic := p.routes.To(stream).(*encode.Topic); err == nil && isTopic {
		err = kafka.CheckKey(at, plan.Key, func(name string) bool { return leadsTo(topic, stream, name) })
	}
	return plan, err
}
