package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
)

// checkedTask is what exporters would share that have the configuration.
type checkedTask struct {
	to      cluster.Access
	cfg     *config.Config
	cluster *cluster.Cluster
}

// checkLease says whether the exporter may use its Lease, and changes nothing.
func checkLease(ctx context.Context, access *source.Access, of *checkedTask, r *report) {
	if of.cfg.HA == nil {
		return
	}
	place, err := task.Lease(of.to, of.cfg, of.cluster.Name)
	if err != nil {
		r.problem(err)
		return
	}
	missing, err := access.Leases(ctx, place.Namespace)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("ha.lease: the API server forbids to %s leases of group coordination.k8s.io in namespace %s: "+
			"bind a role with these verbs to the exporter's user, or name another Lease", strings.Join(missing, ", "), place.Namespace)
	}
	if err == nil {
		err = task.CheckHolder(ctx, of.cfg, of.cluster, place)
	}
	if err != nil {
		r.problem(err)
		return
	}
	r.ok("lease " + place.String())
}
