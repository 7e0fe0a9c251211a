package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/control/httpserver"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/source"
)

// listenAudit receives the API server's audit webhook until the returned stop, which waits; nil is that none is
// configured. One run after the other takes what comes. A standby answers there, too: an API server that reaches it
// through a Service is told to send the batch again, over another connection.
func listenAudit(ctx context.Context, wanted *config.Audit, logger *slog.Logger) (server *webhook.Server, stop func(), err error) {
	if wanted == nil {
		return nil, func() {}, nil
	}
	files := &webhook.Certificates{Cert: wanted.TLS.Cert, Key: wanted.TLS.Key, ClientCA: wanted.ClientCA}
	files.Failed = func(err error) {
		logger.Error("files of audit cannot be read; what they said before counts", "error", err)
	}
	if err := files.Load(); err != nil {
		return nil, nil, usage.Wrap(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", wanted.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listen on %s for the audit webhook: %w: choose another address with audit.listen in the configuration",
			wanted.Listen, control.Cause(err))
	}
	logger.Info("receiving the audit webhook", "address", listener.Addr().String())
	server = webhook.NewServer(httpserver.Bounded(listener), files)
	return server, background.Run(context.WithoutCancel(ctx), server.Run), nil // whoever takes what comes ends first
}

// pushAudit puts in line what the webhook tells of the streams, for the sinks that are told who asked for their
// changes; nil is nothing.
func (a *assembly) pushAudit(t *telemetry.Telemetry) func(context.Context, *pipeline.Inlet) error {
	if a.audit == nil {
		return nil
	}
	var sinks []webhook.Sink // that are told of users
	for i := range a.cfg.Sinks {
		if s := &a.cfg.Sinks[i]; s.Actors {
			sinks = append(sinks, webhook.Sink{Name: s.Name, Wants: a.cluster.WantedBy(s)})
		}
	}
	chosen := selection.By(&a.cluster.Current, func(s *selection.Selected) string { return s.Stream.Resource.String() })
	// find finds the stream of an object, as it is streamed at that moment.
	find := func(group, resource, namespace string) (object audit.Object, found bool) {
		for _, s := range chosen(change.Resource{Group: group, Name: resource}.String()) {
			if s.Stream.Namespace != "" && s.Stream.Namespace != namespace {
				continue
			}
			stream := s.Stream
			object = audit.Object{Stream: &stream, Selected: s.Selection != source.Selection{}, ClusterUID: a.cluster.UID}
			history, err := a.store.Reached(&stream) // the newest that any sink was given something of the stream of
			if err == nil && history != 0 {
				object.Epoch, err = a.store.EpochOf(history)
			}
			return object, err == nil
		}
		return object, false
	}
	taken := webhook.Config{
		Sinks: sinks, Find: find, Observer: webhook.Observer{Event: t.AuditEvent, Refused: t.AuditRefused, Missing: t.AuditMissing},
	}
	t.AuditExpected(webhook.Outcomes(), webhook.Reasons())
	return func(ctx context.Context, inlet *pipeline.Inlet) error { return a.audit.Take(ctx, taken, inlet) }
}
