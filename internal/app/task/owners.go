package task

import (
	"cmp"
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/ha/election"
)

// Owner is who does a task, as the Leases say.
type Owner struct {
	Task     string    `json:"task"`
	Lease    string    `json:"lease"`
	Exporter string    `json:"exporter,omitempty"` // "" is nobody
	Since    time.Time `json:"since,omitzero"`
	Note     string    `json:"note,omitempty"` // why nobody does it
}

// Owners are those of all tasks of the configuration.
func Owners(ctx context.Context, to cluster.Access, cfg *config.Config) (all []Owner, err error) {
	home, err := cluster.Find(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	if to.Home == nil {
		to.Home = new(to)
	}
	tasks := cfg.AllTasks()
	if cfg.Task.Number > 0 { // the configuration is that of one
		tasks = []config.Task{cfg.Task}
	}
	for _, of := range tasks {
		one := cfg
		if cfg.Task.Number == 0 && cfg.IsSplit() {
			one = cfg.Of(of)
		}
		lease, err := Lease(to, one, cmp.Or(of.Cluster.Name, home.Name))
		if err != nil {
			return nil, err
		}
		seen, err := election.Look(ctx, home.Leases, lease)
		if err != nil {
			return nil, err
		}
		owner := Owner{Task: cmp.Or(of.Name(), home.Name), Lease: lease.String(), Exporter: election.Host(seen.Holder), Note: seen.Note}
		if seen.Holder != "" {
			owner.Since = seen.Since
		}
		all = append(all, owner)
	}
	return all, nil
}
