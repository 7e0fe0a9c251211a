package actors

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/httpserver"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Receiver receives the API server's audit webhook for as long as the process lives. One run after the other takes what
// comes. A nil one receives nothing.
type Receiver struct {
	server *webhook.Server
	stop   func()
}

// Listen opens the address. Where no audit is configured, the receiver is nil.
func Listen(ctx context.Context, wanted *config.Audit, logger *slog.Logger) (*Receiver, error) {
	if wanted == nil {
		return nil, nil
	}
	files := Files(wanted)
	files.Failed = func(err error) {
		logger.Error("files of audit cannot be read; what they said before counts", "error", err)
	}
	if err := files.Load(); err != nil {
		return nil, usage.Wrap(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", wanted.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for the audit webhook: %w: choose another address with audit.listen in the configuration", wanted.Listen, httpserver.Cause(err))
	}
	logger.Info("receiving the audit webhook", "address", listener.Addr().String())
	r := &Receiver{server: webhook.NewServer(httpserver.Bounded(listener), files)}
	r.stop = beside.Run(context.WithoutCancel(ctx), r.server.Run) // whoever takes what comes ends first
	return r, nil
}

// Stop receives nothing more, and waits until that is so. No run takes anything any more.
func (r *Receiver) Stop() {
	if r != nil {
		r.stop()
	}
}

// Files are those that say who the server is, and who may send.
func Files(a *config.Audit) *webhook.Certificates {
	return &webhook.Certificates{Cert: a.TLS.Cert, Key: a.TLS.Key, ClientCA: a.ClientCA}
}
