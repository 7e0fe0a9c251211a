package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/ha/election"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Elsewhere says where to ask what only a leader knows.
func (m *Member) Elsewhere() string { return elsewhere(m.Status(), m.lease.Namespace) }

// elsewhere names the leader, and a command to copy where its name can be a pod's: whoever may write the Lease chooses
// the name, and a shell would follow what else it says.
func elsewhere(status telemetry.Leadership, namespace string) string {
	leader := "no exporter leads now: ask again"
	if status.Leader != "" {
		leader = fmt.Sprintf("%q leads since %s: run the command there", status.Leader, status.Since.UTC().Format(time.RFC3339))
	}
	if len(content.IsDNS1123Subdomain(status.Leader)) == 0 {
		leader = fmt.Sprintf("%s leads since %s: run the command there (in a cluster, kubectl exec -n %s %s -- exporter ...)",
			status.Leader, status.Since.UTC().Format(time.RFC3339), namespace, status.Leader)
	}
	return fmt.Sprintf("this exporter stands by, and %s (exporter checkpoint show --log shows the state from anywhere)", leader)
}

// Options are what a member shares, and what it does about it. All are needed.
type Options struct {
	Access cluster.Access
	Config *config.Config
	Logger *slog.Logger
	// Placer spreads this and other tasks over exporters, of which this one is called Self; nil is that whoever is
	// first has this one.
	Placer election.Placer
	Self   string
	// Lead does the task until ctx or the term ends.
	Lead func(ctx context.Context, of *Term) error
	// StandBy answers that another member leads, until the returned function is called.
	StandBy func(ctx context.Context, m *Member) (stop func(), err error)
}

// Member is this exporter's part in the task that several could lead: all streams, with the Lease that says who leads,
// the log of their state, and the identities that they have in brokers.
type Member struct {
	Options
	Cluster   *cluster.Cluster // whose task it is
	lease     election.Place
	self      string // this member's name in the Lease
	claimant  statelog.Claimant
	elected   *election.Member
	takeovers atomic.Int64
	leads     atomic.Bool
	cooldown  cooldown
	// lastQuestion is the leader's that was looked into while this member stands by
	lastQuestion string
	following    atomic.Pointer[standby] // nil while this member leads
}

// Share leads a task whenever this member holds its Lease, and stands by otherwise, until ctx ends.
func Share(ctx context.Context, o Options) error {
	m, err := join(ctx, o)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	leave := background.Run(context.WithoutCancel(ctx), m.elected.Run) // the Lease is given back by it; a second call does nothing
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
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
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
		"lease", m.lease.String(), "leader", election.Host(leader), "error", err)
	return nil
}

// join finds the task, and how to take part in it.
func join(ctx context.Context, o Options) (*Member, error) {
	c, err := cluster.Find(ctx, o.Access, o.Config)
	if err != nil {
		return nil, err
	}
	if err := c.Identify(ctx); err != nil {
		return nil, err
	}
	m := &Member{Options: o, Cluster: c}
	if m.lease, err = Lease(o.Access, o.Config, c.Name); err != nil {
		return nil, err
	}
	if m.self = o.Self; m.self == "" {
		if m.self, err = SelfIn(o.Config.State.Dir); err != nil {
			return nil, err
		}
	}
	sinks, err := sinksOf(o.Config, c)
	if err != nil {
		return nil, err
	}
	m.claimant = statelog.Claimant{Member: election.ID(m.self), Sinks: sinks, Lease: m.lease.String()}
	m.elected, err = election.New(election.Options{
		Config: c.Leases, Place: m.lease, Placer: o.Placer, Self: m.self, Duration: time.Duration(o.Config.HA.Duration), Shared: m.claimant.Sinks,
		Judge: func(theirs string) error { return sameTask(m.claimant.Sinks, theirs) }, Logger: o.Logger,
	})
	return m, err
}

// SelfIn is the name of the exporter whose state directory it is: its host, with an id that is kept there.
func SelfIn(dir string) (string, error) {
	id, err := disk.ID(dir, "member")
	if err != nil {
		return "", fmt.Errorf("read the id of state directory %s: %w: choose another with --state-dir, or with state.dir in the configuration", dir, err)
	}
	host, _ := os.Hostname() // "" where there is none
	return election.Self(cmp.Or(os.Getenv("POD_NAME"), host, "exporter"), id), nil
}

// serveTerm stands by until this member leads, and leads until its term is over. The error is why it is.
func (m *Member) serveTerm(ctx context.Context) (err error) {
	log, err := newStateLog(m.Config, m.Cluster, m.Logger)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	b, err := newStandby(ctx, log, m.claimant)
	if err != nil {
		return IgnoreStop(ctx, err)
	}
	b.respond, m.lastQuestion = m.respond, ""
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
		cause := context.Cause(elected)
		if cause != nil && !errors.Is(cause, context.Cause(ctx)) && !isMoved(cause) { // who is to have it waits until it is given back
			lose(cause)
		}
	}
	defer context.AfterFunc(elected, lost)()
	m.leads.Store(true)
	defer m.leads.Store(false)
	m.takeovers.Add(1)
	m.Logger.Info("this exporter leads", "lease", m.lease.String(), "member", m.self)
	err = m.Lead(running, &Term{
		again: cut, standby: b, duration: time.Duration(m.Config.HA.Duration), end: end, Over: over, Status: m.Status,
		cutOff: &cutOff{others: m.elected.Ask, look: m.look, duration: time.Duration(m.Config.HA.Duration), logger: m.Logger},
	})
	lost() // the other call may come later
	switch cause := context.Cause(over); {
	case cause == nil && err == nil && ctx.Err() == nil && (isMoved(context.Cause(running)) || errors.Is(context.Cause(running), errTaken)):
		return context.Cause(running)
	case cause == nil, err == nil && ctx.Err() != nil:
		return err
	case ctx.Err() == nil:
		return cause
	default:
		return errors.Join(cause, err)
	}
}

// look looks at the brokers of the task with connections of its own, and changes nothing. It returns why each of them
// cannot be used, nil where it can: first that of the log of the state, without which nobody can lead, and where that
// can be used those of the sinks. A leader and a standby look at the same, so what one of them finds and the other does
// not is between it and the brokers.
func (m *Member) look(ctx context.Context) []error {
	place, err := LogPlace(m.Config, m.Cluster, func(string, error) {})
	if err == nil {
		err = lookAt(ctx, place.Sink)
	}
	all := []error{err}
	for i := 0; i < len(m.Config.Sinks) && all[0] == nil; i++ {
		built, err := destination.Build(&m.Config.Sinks[i], m.Cluster, destination.Outlet{Stdout: io.Discard, Told: destination.Nop{}})
		if err == nil {
			err = lookAt(ctx, built.Target)
		}
		all = append(all, err)
	}
	return all
}

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

// respond answers the leader's question where this member reaches all brokers. It has read the log just now. Each
// question is looked into once.
func (m *Member) respond(ctx context.Context) {
	question := m.elected.Question()
	if question == "" || question == m.lastQuestion || !m.cooldown.mayAnswer(time.Now()) {
		return
	}
	m.lastQuestion = question
	if errors.Join(m.look(ctx)...) != nil { // not everything can be used
		return
	}
	if err := m.elected.Answer(ctx, question); err != nil {
		m.Logger.Warn("the leader does not reach its brokers, and cannot be told that this exporter does", "error", err)
		return
	}
	m.Logger.Info("the leader does not reach its brokers; this exporter does, and has said so")
}

// Status is who leads.
func (m *Member) Status() telemetry.Leadership {
	holder, since, trouble := m.elected.Standing()
	status := telemetry.Leadership{
		Leads: m.leads.Load(), Leader: election.Host(holder), Lease: m.lease.String(), Takeovers: int(m.takeovers.Load()),
	}
	if status.Leader != "" {
		status.Since = since.UTC()
	}
	if b := m.following.Load(); b != nil {
		status.Standby = b.status()
	}
	if trouble != nil {
		status.LastError = trouble.Error()
	}
	return status
}

// goesOn says whether another term may follow the one that ended, and tells why it did.
func (m *Member) goesOn(err error) bool {
	var other *election.OtherLeadsError
	switch {
	case errors.As(err, &other):
		m.Logger.Info("another exporter leads; this one stands by", "lease", m.lease.String(), "leader", election.Host(other.Holder))
	case errors.Is(err, errTaken):
		m.Logger.Info("the task begins anew", "reason", err)
	case isMoved(err):
		m.Logger.Info("this exporter stands by, so that each has its share", "reason", err)
	case errors.Is(err, errCutOff), errors.Is(err, errUnreachable):
		m.cooldown.resigned(time.Now())
		m.Logger.Warn("this exporter gives up the Lease, since another may reach the brokers", "lease", m.lease.String(), "error", err)
		m.elected.Resign(time.Duration(m.Config.HA.Duration))
	case sink.IsFenced(err):
		m.Logger.Warn("this exporter was fenced; it leads again if the Lease is still its own", "lease", m.lease.String(), "error", err)
	case listener.IsLate(err):
		m.Logger.Warn(readTooEarly, "error", err)
	default:
		return false
	}
	return true
}

func isMoved(err error) bool { return errors.Is(err, election.ErrMoved) }

// Lease is the configured Lease, or the default one.
func Lease(to cluster.Access, cfg *config.Config, cluster string) (election.Place, error) {
	if cfg.HA.Lease != "" {
		return election.ParsePlace(cfg.HA.Lease), nil
	}
	if to.Home != nil {
		to = *to.Home
	}
	namespace, err := source.Namespace(to.Kubeconfig, to.Context)
	return election.Place{Namespace: namespace, Name: election.NameFor(cluster) + cfg.Task.After(".")}, err
}

// CheckHolder says why those who hold the Lease now could not share it with the configuration's exporters.
func CheckHolder(ctx context.Context, cfg *config.Config, c *cluster.Cluster, lease election.Place) error {
	ours, err := sinksOf(cfg, c)
	if err != nil {
		return err
	}
	return election.CheckHolder(ctx, c.Leases, lease, func(theirs string) error { return sameTask(ours, theirs) })
}

// sinksOf says what the task writes to, each sink on a line of its own, wherever its servers are. Another task has
// other sinks.
func sinksOf(cfg *config.Config, c *cluster.Cluster) (string, error) {
	var all []string
	for i := range cfg.Sinks {
		s := &cfg.Sinks[i]
		d, err := destination.Of(s, c)
		if err != nil {
			return "", err
		}
		all = append(all, s.Name+": "+d.What)
	}
	slices.Sort(all)
	return strings.Join(all, "\n"), nil
}

// sameTask says why those who write to these sinks are not of the task of the others. A configuration that changes
// while others run has another sink, or one less; none in common is another release.
func sameTask(ours, theirs string) error {
	have := strings.Split(ours, "\n")
	common := func(sink string) bool { return slices.Contains(have, sink) }
	if theirs == "" || slices.ContainsFunc(strings.Split(theirs, "\n"), common) {
		return nil
	}
	return usage.Errorf("they write to %s, and this one to %s", usage.Some(strings.Split(theirs, "\n"), 3), usage.Some(have, 3))
}

const readTooEarly = "a sink's log was read too early; everything begins anew where it is saved"

// Alone leads without asking anybody, again and again. Where a sink's log was read too early, since an earlier
// exporter's last words came after that, the line stops and begins anew: as after a crash, but the process stays.
func Alone(ctx context.Context, logger *slog.Logger, lead func(context.Context, *Term) error) error {
	for wait := listener.RetryForever(); ; {
		err := lead(ctx, new(Term))
		if !listener.IsLate(err) || ctx.Err() != nil {
			return err
		}
		logger.Warn(readTooEarly, "error", err)
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
			return nil
		}
	}
}

// IgnoreStop is nil where the error is only our own stop.
func IgnoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Owners are those of all tasks of the configuration.
func Owners(ctx context.Context, to cluster.Access, cfg *config.Config) (all []election.Owner, err error) {
	home, err := cluster.Find(ctx, to, cfg)
	if err != nil {
		return nil, err
	}
	if to.Home == nil {
		to.Home = new(to)
	}
	tasks := cfg.AllTasks()
	if cfg.Task.Number > 0 { // the configuration is that of one
		tasks = []config.Task{cfg.Task}
	}
	for _, of := range tasks {
		one := cfg
		if cfg.Task.Number == 0 && cfg.IsSplit() {
			one = cfg.Of(of)
		}
		lease, err := Lease(to, one, cmp.Or(of.Cluster.Name, home.Name))
		if err != nil {
			return nil, err
		}
		owner, err := election.OwnerOf(ctx, home.Leases, cmp.Or(of.Name(), home.Name), lease)
		if err != nil {
			return nil, err
		}
		all = append(all, owner)
	}
	return all, nil
}
