package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/statelog"
)

// checkStateLog looks at the log of the state, and changes nothing.
func checkStateLog(ctx context.Context, of *checkedTask, r *report) {
	c, cfg := of.cluster, of.cfg
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
	found, err := statelog.Look(ctx, place, of.bid(ctx))
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

// bid is the wish to write the log. Whose Lease it is says the API server.
func (of *checkedTask) bid(ctx context.Context) statelog.Bid {
	bid := statelog.Bid{Of: statelog.Identity{Cluster: of.cluster.Name, UID: of.cluster.UID, Instance: of.cluster.Instance}}
	if of.cfg.HA == nil || of.cluster.UID == "" {
		return bid
	}
	if lease, err := task.Lease(of.to, of.cfg, of.cluster.Name); err == nil { // what is wrong with it was said
		bid.Judge = task.JudgeOf(ctx, of.cluster, lease)
	}
	return bid
}
