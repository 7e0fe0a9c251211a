package check

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/actors"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// checkAudit looks at the files of the audit webhook, and whether its address is free.
func checkAudit(ctx context.Context, cfg *config.Config, running *control.Running, r *report) {
	if cfg.Audit == nil {
		return
	}
	if err := actors.Files(cfg.Audit).Load(); err != nil {
		r.problem(usage.Wrap(err))
		return
	}
	r.ok("files of audit")
	if running == nil {
		checkListen(ctx, cfg.Audit.Listen, "audit.listen in the configuration", r)
	}
}
