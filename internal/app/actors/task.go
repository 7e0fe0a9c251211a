package actors

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/control/httpserver"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Task is a run, whose sinks are told who asked for the changes of its streams.
type Task struct {
	Config    *config.Config
	Cluster   *cluster.Cluster
	Store     *checkpoint.Store
	Telemetry *telemetry.Telemetry
}

// Push puts in line what the webhook tells of the task's streams; nil is nothing.
func (r *Receiver) Push(of *Task) func(context.Context, *pipeline.Inlet) error {
	if r == nil {
		return nil
	}
	var sinks []webhook.Sink // that are told of users
	for i := range of.Config.Sinks {
		if s := &of.Config.Sinks[i]; s.Actors {
			sinks = append(sinks, webhook.Sink{Name: s.Name, Wants: of.Cluster.WantedBy(s)})
		}
	}
	chosen := selection.By(&of.Cluster.Current, func(s *selection.Selected) string { return s.Stream.Resource.String() })
	// find finds the stream of an object, as it is streamed at that moment.
	find := func(group, resource, namespace string) (object audit.Object, found bool) {
		for _, s := range chosen(change.Resource{Group: group, Name: resource}.String()) {
			if s.Stream.Namespace != "" && s.Stream.Namespace != namespace {
				continue
			}
			stream := s.Stream
			object = audit.Object{Stream: &stream, Selected: s.Selection != source.Selection{}, ClusterUID: of.Cluster.UID}
			history, err := of.Store.Reached(&stream) // the newest that any sink was given something of the stream of
			if err == nil && history != 0 {
				object.Epoch, err = of.Store.EpochOf(history)
			}
			return object, err == nil
		}
		return object, false
	}
	taken := webhook.Config{
		Sinks: sinks, Find: find, Observer: webhook.Observer{Event: of.Telemetry.AuditEvent, Refused: of.Telemetry.AuditRefused, Missing: of.Telemetry.AuditMissing},
	}
	of.Telemetry.AuditExpected(webhook.Outcomes(), webhook.Reasons())
	return func(ctx context.Context, inlet *pipeline.Inlet) error { return r.server.Take(ctx, taken, inlet) }
}

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
		return nil, fmt.Errorf("listen on %s for the audit webhook: %w: choose another address with audit.listen in the configuration", wanted.Listen, control.Cause(err))
	}
	logger.Info("receiving the audit webhook", "address", listener.Addr().String())
	r := &Receiver{server: webhook.NewServer(httpserver.Bounded(listener), files)}
	r.stop = background.Run(context.WithoutCancel(ctx), r.server.Run) // whoever takes what comes ends first
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
