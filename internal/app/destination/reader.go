package destination

import (
	"context"
	"io"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Open makes what reads the log of one of the configuration's sinks. The API server is asked only for what
// the kind of sink needs of it.
func Open(ctx context.Context, to cluster.Access, cfg *config.Config, s *config.Sink, start sink.Start) (sink.Reader, error) {
	cluster.NewLogger(io.Discard, cfg.Log)
	c := &cluster.Cluster{Name: cfg.Cluster}
	k, err := kinds().kindOf(s)
	if err != nil {
		return nil, err
	}
	if k.needs == streams || k.needs == clusterName && c.Name == "" {
		if c, err = cluster.Find(to, cfg); err != nil {
			return nil, err
		}
	}
	if k.needs == streams {
		if _, err := c.Resolve(ctx, c.Rest, cfg.Resources); err != nil {
			return nil, err
		}
	}
	return NewReader(s, c, start)
}

// NeedsStreams says whether the places that the sink writes to are named after streams.
func NeedsStreams(s *config.Sink) bool { return kinds()[s.Kind()].needs == streams }
