package app

import (
	"context"
	"net/http"

	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/page"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// standBy answers that another member leads, until the returned function is called.
func (p *process) standBy(ctx context.Context, m *task.Member) (stop func(), err error) {
	return p.server.Serve(ctx, p.standbyHandler(m))
}

// standbyHandler shows who leads.
func (p *process) standbyHandler(m *task.Member) http.Handler {
	c := m.Cluster()
	t := telemetry.New(telemetry.Options{
		Version: p.options.Access.Version, ClusterName: c.Name, ClusterUID: c.UID, Logger: p.logger, Leadership: m.Status,
	})
	shown := page.New(page.Options{Status: func() any { return t.Status() }, Private: control.Refusal})
	return handler(t, shown, control.Elsewhere(m.Elsewhere, p.token))
}
