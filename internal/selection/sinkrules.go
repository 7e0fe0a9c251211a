package selection

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/transform"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// SinkRules are what the sink cuts and redacts beside its resources.
func SinkRules(s *config.Sink, resources []config.Resource) transform.Rules {
	return withKept(transform.Rules{Drop: s.Drop, Keep: s.Only, Redact: s.Redact}, resources...)
}

// ShapeForSink is what the sink makes of the records of its resources; nil leaves them as they are.
func ShapeForSink(c *config.Config, s *config.Sink, key transform.Key, failed func(*change.Record, error)) (*shape.Shape, error) {
	made, err := shape.New(shape.Options{
		Ops: s.Ops, Filter: s.Filter, Before: areKept(c.Resources, s), Rules: SinkRules(s, c.Resources), Key: key, Failed: failed,
	})
	if err != nil {
		return nil, usage.Errorf("sink %q: %w", s.Name, err)
	}
	return made, nil
}

// CheckSinkRules finds an expression or a path of a sink that cannot be parsed.
func CheckSinkRules(c *config.Config, s *config.Sink) error {
	_, err := ShapeForSink(c, s, transform.Key{Secret: []byte("any")}, nil)
	return err
}

// areKept says whether the objects of all resources that the sink takes are kept. What is chosen by name counts for a
// wildcard, too.
func areKept(resources []config.Resource, s *config.Sink) bool {
	all := len(s.Resources) == 0 || slices.ContainsFunc(s.Resources, source.IsWildcard)
	return !slices.ContainsFunc(resources, func(r config.Resource) bool {
		return !r.Before && (all || slices.Contains(s.Resources, r.Name))
	})
}
