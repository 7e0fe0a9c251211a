package actors

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Task is a run, whose sinks are told who asked for the changes of its streams.
type Task struct {
	Config    *config.Config
	Cluster   *cluster.Cluster
	Store     *checkpoint.Store
	Telemetry *telemetry.Telemetry
}

// Beside puts in line what the webhook tells of the task's streams; nil is nothing.
func (r *Receiver) Beside(of *Task) *pipeline.Beside {
	if r == nil {
		return nil
	}
	taken := webhook.Config{
		Sinks: of.sinks(), Find: of.stream(), Observer: webhook.Observer{Event: of.Telemetry.AuditEvent, Refused: of.Telemetry.AuditRefused, Missing: of.Telemetry.AuditMissing},
	}
	of.Telemetry.AuditExpected(webhook.Outcomes(), webhook.Reasons())
	run := func(ctx context.Context, inlet *pipeline.Inlet) error { return r.server.Take(ctx, taken, inlet) }
	return &pipeline.Beside{Stream: change.Actors(), Run: run}
}

// sinks are those that are told of users.
func (t *Task) sinks() (sinks []webhook.Sink) {
	for i := range t.Config.Sinks {
		if s := &t.Config.Sinks[i]; s.Actors {
			sinks = append(sinks, webhook.Sink{Name: s.Name, Wants: t.Cluster.WantedBy(s)})
		}
	}
	return sinks
}

// stream finds the stream of an object, as it is streamed at that moment.
func (t *Task) stream() func(group, resource, namespace string) (audit.Object, bool) {
	chosen := selection.ByResource(&t.Cluster.Current)
	return func(group, resource, namespace string) (of audit.Object, found bool) {
		for _, s := range chosen(change.Resource{Group: group, Name: resource}.String()) {
			if s.Stream.Namespace != "" && s.Stream.Namespace != namespace {
				continue
			}
			stream := s.Stream
			epoch, err := t.epochOf(&stream)
			if err != nil {
				return of, false
			}
			return audit.Object{
				Stream: &stream, Selected: s.Selection != source.Selection{}, ClusterUID: t.Cluster.UID, Epoch: epoch,
			}, true
		}
		return of, false
	}
}

// epochOf is the newest history that any sink was given something of the stream of.
func (t *Task) epochOf(stream *change.Stream) (string, error) {
	history, err := t.Store.Reached(stream)
	if err != nil || history == 0 {
		return "", err
	}
	return t.Store.EpochOf(history)
}
