package task

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/election"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// Options are what a member shares, and what it does about it. All are needed.
type Options struct {
	Access cluster.Access
	Config *config.Config
	Logger *slog.Logger
	// Lead does the task until ctx or the term ends.
	Lead func(ctx context.Context, of *Term) error
	// StandBy answers that another member leads, until the returned function is called.
	StandBy func(ctx context.Context, m *Member) (stop func(), err error)
}

// Member is this exporter's part in a task that several could lead.
type Member struct {
	Options
	task      *task
	claimant  statelog.Claimant
	elected   *election.Member
	takeovers atomic.Int64
	leads     atomic.Bool
	cooldown  cooldown
	following atomic.Pointer[standby] // nil while this member leads
}

// Share leads a task whenever this member holds its Lease, and stands by otherwise, until ctx ends.
func Share(ctx context.Context, o Options) error {
	m, err := join(ctx, o)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	leave := m.takePart(ctx)
	defer leave()
	for wait := listener.RetryForever(); ; {
		began := time.Now()
		err := m.serveTerm(ctx)
		if ctx.Err() != nil {
			leave()
			return m.stopped(ctx, err)
		}
		if !m.goesOn(err) {
			return err
		}
		if time.Since(began) > time.Minute {
			wait = listener.RetryForever()
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

// stopped is what a stop came to. A member that was fenced meanwhile, or that met the last words of the leader before,
// leaves what it could not deliver to the next leader. If there is one, nothing is wrong.
func (m *Member) stopped(ctx context.Context, err error) error {
	if !isOvertaken(err) {
		return err
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(m.Config.HA.Duration))
	defer cancel()
	leader, found := m.elected.AwaitOther(bounded)
	if !found {
		return err
	}
	m.Logger.Info("exporter stopped; what it did not deliver, another one does, which leads now",
		"lease", m.task.lease.String(), "leader", election.Host(leader), "error", err)
	return nil
}

// join finds the task, and how to take part in it.
func join(ctx context.Context, o Options) (*Member, error) {
	c, err := cluster.Find(o.Access, o.Config)
	if err != nil {
		return nil, err
	}
	if err := c.Identify(ctx); err != nil {
		return nil, err
	}
	m := &Member{Options: o}
	if m.task, err = newTask(o.Access, o.Config, c); err != nil {
		return nil, err
	}
	if m.claimant, err = m.task.claimant(); err != nil {
		return nil, err
	}
	m.elected, err = election.New(election.Options{
		Config: c.Rest, Place: m.task.lease, Self: m.task.self(), Duration: time.Duration(o.Config.HA.Duration), Shared: m.claimant.Sinks,
		Judge: func(theirs string) error { return sameTask(m.claimant.Sinks, theirs) }, Logger: o.Logger,
	})
	return m, err
}

// takePart takes part in the election until the returned function is called, which gives the Lease back. A second call
// does nothing.
func (m *Member) takePart(ctx context.Context) (leave func()) {
	return beside.Run(context.WithoutCancel(ctx), m.elected.Run)
}

// serveTerm stands by until this member leads, and leads until its term is over. The error is why it is.
func (m *Member) serveTerm(ctx context.Context) (err error) {
	b, err := m.prepare(ctx)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	elected, resign, err := m.standBy(ctx, b)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	defer resign()
	running, cut := context.WithCancelCause(elected)
	defer cut(nil)
	over, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	end := func(cause error) {
		lose(cause)
		cut(cause)
	}
	lost := func() {
		if cause := context.Cause(elected); cause != nil && !errors.Is(cause, context.Cause(ctx)) {
			lose(cause)
		}
	}
	defer context.AfterFunc(elected, lost)()
	m.leads.Store(true)
	defer m.leads.Store(false)
	m.takeovers.Add(1)
	m.Logger.Info("this exporter leads", "lease", m.task.lease.String(), "member", m.task.self())
	err = m.Lead(running, &Term{
		claimant: m.claimant, standby: b, mayClaim: m.task.mayClaim, duration: time.Duration(m.Config.HA.Duration), end: end, over: over, status: m.Status,
		cutOff: &cutOff{elector: m.elected, look: m.look, duration: time.Duration(m.Config.HA.Duration), logger: m.Logger},
	})
	lost() // the other call may come later
	switch cause := context.Cause(over); {
	case cause == nil, err == nil && ctx.Err() != nil:
		return err
	case ctx.Err() == nil:
		return cause
	default:
		return errors.Join(cause, err)
	}
}

// prepare takes the directory, to follow the log into it.
func (m *Member) prepare(ctx context.Context) (*standby, error) {
	log, err := newStateLog(m.Config, m.task.cluster, m.Logger)
	if err != nil {
		return nil, err
	}
	b, err := newStandby(ctx, log, m.claimant)
	if err == nil {
		b.answers = &respondent{elected: m.elected, look: m.look, cooldown: &m.cooldown, logger: m.Logger}
	}
	return b, err
}

// look looks at the brokers of the task.
func (m *Member) look(ctx context.Context) brokerHealth { return look(ctx, m.Config, m.task.cluster) }

// standBy follows the log, and answers that another member leads, until this one does.
func (m *Member) standBy(ctx context.Context, b *standby) (term context.Context, end context.CancelFunc, err error) {
	defer b.follow(ctx)()
	m.following.Store(b)
	defer m.following.Store(nil)
	hide, err := m.StandBy(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	defer hide()
	return m.elected.Lead(ctx)
}

// Cluster is the one whose task it is.
func (m *Member) Cluster() *cluster.Cluster { return m.task.cluster }

// Status is who leads.
func (m *Member) Status() telemetry.Leadership {
	standing := m.elected.Standing()
	status := telemetry.Leadership{
		Leads: m.leads.Load(), Leader: election.Host(standing.Holder), Lease: m.task.lease.String(), Takeovers: int(m.takeovers.Load()),
	}
	if status.Leader != "" {
		status.Since = standing.Since.UTC()
	}
	if b := m.following.Load(); b != nil {
		status.Standby = b.status()
	}
	if standing.Trouble != nil {
		status.LastError = standing.Trouble.Error()
	}
	return status
}

// goesOn says whether another term may follow the one that ended, and tells why it did.
func (m *Member) goesOn(err error) bool {
	var other *election.OtherLeadsError
	switch {
	case errors.As(err, &other):
		m.Logger.Info("another exporter leads; this one stands by", "lease", m.task.lease.String(), "leader", election.Host(other.Holder))
	case errors.Is(err, errCutOff), errors.Is(err, errUnreachable):
		m.cooldown.resigned(time.Now())
		m.Logger.Warn("this exporter gives up the Lease, since another may reach the brokers", "lease", m.task.lease.String(), "error", err)
		m.elected.Resign(time.Duration(m.Config.HA.Duration))
	case isFenced(err):
		m.Logger.Warn("this exporter was fenced; it leads again if the Lease is still its own", "lease", m.task.lease.String(), "error", err)
	case listener.IsLate(err):
		m.Logger.Warn(readTooEarly, "error", err)
	default:
		return false
	}
	return true
}
