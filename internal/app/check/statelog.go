package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/statelog"
)

// checkStateLog looks at the log of the state, and changes nothing.
func checkStateLog(ctx context.Context, c *cluster.Cluster, cfg *config.Config, r *report) {
	if cfg.State.Log == nil {
		return
	}
	place, err := task.LogPlace(cfg, c, func(string, error) {})
	if err != nil {
		r.problem(err)
		return
	}
	if target, ok := place.Sink.(checker); ok {
		if _, err := target.Check(ctx); err != nil {
			for _, one := range joined(err) {
				r.problem(fmt.Errorf("log of the state, %s: %w", place.Name, one))
			}
			return
		}
	}
	found, err := statelog.Look(ctx, place, statelog.Identity{Cluster: c.Name, UID: c.UID, Instance: c.Instance})
	switch {
	case errors.Is(err, statelog.ErrNothing):
		r.ok("log of the state, " + place.Name + ", which the first start fills")
	case err != nil && !task.IsForGood(err):
		r.note(err.Error())
	case err != nil:
		r.problem(err)
	default:
		r.ok(fmt.Sprintf("log of the state, %s, saved %s", place.Name, found.Saved.UTC().Format(time.RFC3339)))
	}
}
