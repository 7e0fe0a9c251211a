package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/election"
	"github.com/kubecdc/kubecdc/internal/page"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// share is this exporter's part in a task that several could lead.
type share struct {
	*process
	task      *task
	claimant  statelog.Claimant
	member    *election.Member
	takeovers atomic.Int64
	leads     atomic.Bool
}

// share leads a task whenever this member holds its Lease, and stands by otherwise, until ctx ends.
func (p *process) share(ctx context.Context) error {
	s, err := p.join(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	defer s.takePart(ctx)()
	for wait := delivery.RetryForever(); ; {
		began := time.Now()
		err := s.serveTerm(ctx)
		if ctx.Err() != nil || !s.goesOn(err) {
			return err
		}
		if time.Since(began) > time.Minute {
			wait = delivery.RetryForever()
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

// join finds the task, and how to take part in it.
func (p *process) join(ctx context.Context) (*share, error) {
	c, err := findCluster(p.options.Access, p.cfg)
	if err != nil {
		return nil, err
	}
	if err := c.identify(ctx); err != nil {
		return nil, err
	}
	s := &share{process: p}
	if s.task, err = newTask(p.options.Access, p.cfg, c); err != nil {
		return nil, err
	}
	if s.claimant, err = s.task.claimant(); err != nil {
		return nil, err
	}
	s.member, err = election.New(election.Options{
		Config: c.rest, Place: s.task.lease, Self: s.task.self(), Duration: time.Duration(p.cfg.HA.Duration), Mark: s.claimant.Sinks,
		Judge: func(theirs string) error { return sameTask(s.claimant.Sinks, theirs) }, Logger: p.logger,
	})
	return s, err
}

// takePart takes part in the election until the returned function is called, which gives the Lease back.
func (s *share) takePart(ctx context.Context) (leave func()) {
	electing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.member.Run(electing)
	}()
	return func() {
		cancel()
		<-done
	}
}

// serveTerm stands by until this member leads, and leads until its term is over. The error is why it is.
func (s *share) serveTerm(ctx context.Context) error {
	elected, resign, err := s.standBy(ctx)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	defer resign()
	running, end := context.WithCancelCause(elected)
	defer end(nil)
	over, lose := context.WithCancel(context.WithoutCancel(ctx))
	defer lose()
	defer context.AfterFunc(running, func() {
		if ctx.Err() == nil {
			lose()
		}
	})()
	s.leads.Store(true)
	defer s.leads.Store(false)
	s.takeovers.Add(1)
	s.logger.Info("this exporter leads", "lease", s.task.lease.String(), "member", s.task.self())
	err = s.runOnce(running, &term{claimant: s.claimant, duration: time.Duration(s.cfg.HA.Duration), end: end, over: over, status: s.status})
	if cause := context.Cause(running); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// standBy answers that another member leads, until this one does.
func (s *share) standBy(ctx context.Context) (term context.Context, end context.CancelFunc, err error) {
	owned, err := checkpoint.Reserve(s.cfg.State.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, owned.Close()) }()
	hide, err := s.serve(ctx, s.standbyHandler())
	if err != nil {
		return nil, nil, err
	}
	defer hide()
	return s.member.Lead(ctx)
}

// standbyHandler shows who leads.
func (s *share) standbyHandler() http.Handler {
	t := telemetry.New(telemetry.Options{
		Version: s.options.Access.Version, ClusterName: s.task.cluster.name, ClusterUID: s.task.cluster.uid, Logger: s.logger, Leadership: s.status,
	})
	shown := page.New(page.Options{Status: func() any { return t.Status() }, Private: control.Refusal})
	return withPage(shown, s.withQuestions(t.Handler(), control.Elsewhere(s.elsewhere, s.token)))
}

// elsewhere says where to ask what only a leader knows.
func (s *share) elsewhere() string {
	leader := "no exporter leads now: ask again"
	if status := s.status(); status.Leader != "" {
		leader = fmt.Sprintf("%s leads: run the command there", status.Leader)
	}
	return fmt.Sprintf("this exporter stands by, and %s (exporter checkpoint show --log shows the state from anywhere)", leader)
}

// status is who leads.
func (s *share) status() telemetry.Leadership {
	standing := s.member.Standing()
	status := telemetry.Leadership{
		Leads: s.leads.Load(), Leader: election.Host(standing.Holder), Lease: s.task.lease.String(), Takeovers: int(s.takeovers.Load()),
	}
	if standing.Trouble != nil {
		status.LastError = standing.Trouble.Error()
	}
	return status
}

// goesOn says whether another term may follow the one that ended, and tells why it did.
func (s *share) goesOn(err error) bool {
	var other *election.OtherLeadsError
	switch {
	case errors.As(err, &other):
		s.logger.Info("another exporter leads; this one stands by", "lease", s.task.lease.String(), "leader", election.Host(other.Holder))
	case errors.Is(err, errCutOff):
		s.logger.Warn("this exporter gives up the Lease, since another may reach the brokers", "lease", s.task.lease.String(), "error", err)
		s.member.Resign(time.Duration(s.cfg.HA.Duration))
	case isFenced(err):
		s.logger.Warn("this exporter was fenced; it leads again if the Lease is still its own", "lease", s.task.lease.String(), "error", err)
	case delivery.IsLate(err):
		s.logger.Warn(readTooEarly, "error", err)
	default:
		return false
	}
	return true
}
