package destination

import (
	"context"
	"io"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Open makes what reads the log of one of the configuration's sinks, as it comes. The API server is asked only for what
// the sink needs of it.
func Open(ctx context.Context, to cluster.Access, cfg *config.Config, s *config.Sink, start sink.Start) (sink.Reader, error) {
	cluster.NewLogger(io.Discard, cfg.Log)
	c := &cluster.Cluster{Name: cfg.Cluster}
	k, err := kinds().kindOf(s)
	if err != nil {
		return nil, err
	}
	needs := k.needs(s)
	if needs == streams || needs == clusterName && c.Name == "" {
		if c, err = cluster.Find(to, cfg); err != nil {
			return nil, err
		}
	}
	if needs == streams {
		if _, err := c.Resolve(ctx, c.Rest, cfg.Resources); err != nil {
			return nil, err
		}
	}
	return kinds().reader(s, c, func(d *Destination) (sink.Reader, error) {
		if d.tail == nil || needs == streams {
			return d.read(start)
		}
		return d.tail(start)
	})
}

// NeedsStreams says whether only the streams tell which places the sink writes to.
func NeedsStreams(s *config.Sink) bool { return kinds()[s.Kind()].needs(s) == streams }
