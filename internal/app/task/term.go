package task

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Term is the time in which this member leads a task. nil is that of an exporter alone, which ends with the process.
type Term struct {
	claimant statelog.Claimant
	standby  *standby // as what this member waited
	mayClaim func(ctx context.Context) func(last statelog.Claimant, wrote time.Time) error
	duration time.Duration               // of the Lease
	end      func(cause error)           // ends it
	over     context.Context             // ends with it, also while the process stops, but not with the stop itself
	status   func() telemetry.Leadership // who leads
	cutOff   *cutOff
}

// patience is how long the brokers may take to let this member lead.
func (t *Term) patience() time.Duration { return max(t.duration, 10*time.Second) }

// Log is the log of the state of a run, which a member that leads has followed already. It is nil where none is
// configured.
func (t *Term) Log(cfg *config.Config, c *cluster.Cluster, logger *slog.Logger) (*StateLog, error) {
	if t == nil {
		return newStateLog(cfg, c, logger)
	}
	return t.standby.log, nil
}

// Lost ends when another member delivers what this one has not, nil is never.
func (t *Term) Lost() context.Context {
	if t == nil {
		return nil
	}
	return t.over
}

// Prove is how this member proves that it still leads, once the log is attached; nil is that nobody else could lead.
func (t *Term) Prove(log *StateLog) func(context.Context) error {
	if t == nil {
		return nil
	}
	return log.log.Prove
}

// Observe ends the term when a sink says that it is another's.
func (t *Term) Observe(o pipeline.Observer) pipeline.Observer {
	if t == nil {
		return o
	}
	told := o.Stopped
	o.Stopped = func(name string, err error) {
		told(name, err)
		if isFenced(err) {
			t.end(err)
		}
	}
	return o
}

// Watch ends the term where this member reaches no broker and another one does, until the returned stop. sinks is since
// when no sink takes records, zero while one does.
func (t *Term) Watch(ctx context.Context, log *StateLog, sinks func() time.Time) (stop func()) {
	if t == nil {
		return func() {}
	}
	t.cutOff.failing = func() time.Time { return earlier(sinks(), log.failing()) }
	return beside.Run(ctx, func(ctx context.Context) {
		if why := t.cutOff.watch(ctx); why != nil {
			t.end(why)
		}
	})
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isFenced says whether another exporter has taken over what this one wrote to.
func isFenced(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case *sink.PermanentError:
		return e.Fenced || isFenced(e.Err)
	case interface{ Unwrap() []error }: // several sinks
		return slices.ContainsFunc(e.Unwrap(), isFenced)
	}
	return isFenced(errors.Unwrap(err))
}

// Standing is who leads, nil of an exporter alone.
func (t *Term) Standing() func() telemetry.Leadership {
	if t == nil {
		return nil
	}
	return t.status
}
