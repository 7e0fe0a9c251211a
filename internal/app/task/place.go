package task

import (
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// LogPlace is the place of the log of the state as it is configured.
func LogPlace(cfg *config.Config, c *cluster.Cluster, retry sink.RetryFunc) (statelog.Place, error) {
	at := slices.IndexFunc(cfg.Sinks, func(s config.Sink) bool { return s.Name == cfg.State.Log.Sink })
	if at < 0 {
		return statelog.Place{}, usage.Errorf("state.log.sink: there is no sink %q: name one of the sinks", cfg.State.Log.Sink)
	}
	d, err := destination.Of(&cfg.Sinks[at], c)
	if err != nil {
		return statelog.Place{}, err
	}
	if d.StateLog == nil {
		return statelog.Place{}, usage.Errorf("state.log.sink: sink %q cannot keep a log of the state: name a sink in kafka or nats", cfg.Sinks[at].Name)
	}
	place, err := d.StateLog(stateLogName(cfg.State.Log.Name, c.Name), retry)
	if err != nil {
		return place, usage.Errorf("state.log: %w", err)
	}
	place.Name += " (state.log)"
	return place, nil
}

// stateLogName is the template with the cluster's name in it, as topics and buckets may be named.
func stateLogName(template, cluster string) string {
	return strings.ReplaceAll(template, "{cluster}", strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, cluster))
}
