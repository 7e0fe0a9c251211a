package check

import (
	"context"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkedLease is the Lease that a configuration asks for.
type checkedLease struct {
	to      cluster.Access
	cfg     *config.Config
	cluster string
}

// checkLease says whether the exporter may use its Lease, and changes nothing.
func checkLease(ctx context.Context, access *source.Access, l *checkedLease, r *report) {
	if l.cfg.HA == nil {
		return
	}
	place, err := task.Lease(l.to, l.cfg, l.cluster)
	if err != nil {
		r.problem(err)
		return
	}
	missing, err := access.Leases(ctx, place.Namespace)
	switch {
	case err != nil:
		r.problem(err)
	case len(missing) > 0:
		r.problem(usage.Errorf("ha.lease: the API server forbids to %s leases of group coordination.k8s.io in namespace %s: "+
			"bind a role with these verbs to the exporter's user, or name another Lease", strings.Join(missing, " and "), place.Namespace))
	default:
		r.ok("lease " + place.String())
	}
}
