package app

import (
	"context"
	"io"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// OpenLog makes what reads the log of one of the configuration's sinks. The API server is asked only for what
// the kind of sink needs of it.
func OpenLog(ctx context.Context, to Access, cfg *config.Config, s *config.Sink, start sink.Start) (sink.Reader, error) {
	newLogger(io.Discard, cfg.Log)
	c := &cluster{name: cfg.Cluster}
	k, err := c.kindOf(s)
	if err != nil {
		return nil, err
	}
	if k.needs == streams || k.needs == clusterName && c.name == "" {
		if c, err = findCluster(to, cfg); err != nil {
			return nil, err
		}
	}
	if k.needs == streams {
		if _, err := c.Resolve(ctx, c.rest, cfg.Resources); err != nil {
			return nil, err
		}
	}
	return newReader(s, c, start)
}

// NeedsStreams says whether the places that the sink writes to are named after streams.
func NeedsStreams(s *config.Sink) bool { return kinds()[s.Kind()].needs == streams }
