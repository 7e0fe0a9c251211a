package app

import (
	"context"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// snapshots are the full snapshots of this run, as people are told of them.
type snapshots struct {
	store     *checkpoint.Store
	telemetry *telemetry.Telemetry
	roster    atomic.Pointer[pipeline.Roster] // nil before the pipeline runs
}

// follow is what a pipeline runs that the snapshots look into.
func (s *snapshots) follow(run func(context.Context, *pipeline.Roster) error) func(context.Context, *pipeline.Roster) error {
	return func(ctx context.Context, roster *pipeline.Roster) error {
		s.roster.Store(roster)
		return run(ctx, roster)
	}
}

// owed are those that are owed, and the resyncs that are due, with how far each is.
func (s *snapshots) owed() ([]control.Owed, error) {
	owed, err := control.ReadOwed(s.store)
	if err != nil {
		return nil, err
	}
	if roster := s.roster.Load(); roster != nil {
		owed = control.WithDue(owed, roster.Due())
	}
	for i := range owed {
		s.measure(&owed[i])
	}
	return owed, nil
}

func (s *snapshots) measure(o *control.Owed) {
	progress, found := s.telemetry.Progress(o.Stream, o.Sink, change.Reason(o.Reason))
	switch {
	case !found:
		o.State = control.Waits
		return
	case progress.Read:
		o.State = control.Delivers
	default:
		o.State = control.Reads
	}
	o.Objects, o.Percent = progress.Objects, progress.Percent
}
