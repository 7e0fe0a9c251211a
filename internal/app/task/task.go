package task

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/election"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// task is what one exporter at a time does: streams, the Lease that says who leads, the log of their state, and the
// identities that they have in brokers. There is one, of all streams.
type task struct {
	cfg     *config.Config
	cluster *cluster.Cluster
	lease   election.Place
	member  string // of those who share it: the state directory's id
}

// newTask is all streams of the configuration.
func newTask(to cluster.Access, cfg *config.Config, c *cluster.Cluster) (*task, error) {
	t := &task{cfg: cfg, cluster: c}
	var err error
	if t.lease, err = Lease(to, cfg, c.Name); err != nil {
		return nil, err
	}
	t.member, err = disk.ID(cfg.State.Dir, "member")
	if err != nil {
		return nil, fmt.Errorf("read the id of state directory %s: %w: choose another with --state-dir, or with state.dir in the configuration", cfg.State.Dir, err)
	}
	return t, nil
}

// Lease is the configured Lease, or the default one.
func Lease(to cluster.Access, cfg *config.Config, cluster string) (election.Place, error) {
	if cfg.HA.Lease != "" {
		return election.ParsePlace(cfg.HA.Lease), nil
	}
	namespace, err := source.Namespace(to.Kubeconfig, to.Context)
	return election.Place{Namespace: namespace, Name: election.NameFor(cluster)}, err
}

// CheckHolder says why those who hold the Lease now could not share it with the configuration's exporters.
func CheckHolder(ctx context.Context, cfg *config.Config, c *cluster.Cluster, lease election.Place) error {
	ours, err := (&task{cfg: cfg, cluster: c}).sinks()
	if err != nil {
		return err
	}
	return election.CheckHolder(ctx, c.Rest, lease, func(theirs string) error { return sameTask(ours, theirs) })
}

// JudgeOf judges who wrote a log for those who share the Lease.
func JudgeOf(ctx context.Context, c *cluster.Cluster, lease election.Place) func(last statelog.Claimant, wrote time.Time) error {
	return (&task{cluster: c, lease: lease}).mayClaim(ctx)
}

// sinks says what the task writes to, each sink on a line of its own, wherever its servers are. Another task has other
// sinks.
func (t *task) sinks() (string, error) {
	var all []string
	for i := range t.cfg.Sinks {
		s := &t.cfg.Sinks[i]
		d, err := destination.Of(s, t.cluster)
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
	return usage.Errorf("they write to %s, and this one to %s", list(theirs), list(ours))
}

// list names a few sinks for people.
func list(sinks string) string {
	names := strings.Split(sinks, "\n")
	const most = 3
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// claimant is as whom the task's log is claimed.
func (t *task) claimant() (statelog.Claimant, error) {
	sinks, err := t.sinks()
	return statelog.Claimant{Member: t.member, Sinks: sinks, Lease: t.lease.String()}, err
}

// stillness is how long nobody may have written to a log that is taken from exporters with another Lease, where the API
// server does not say whether one of them holds that.
const stillness = time.Minute

// mayClaim says why the log may not be taken from who wrote it last. Members of one task share a Lease. Those with
// another one are of another release, or the Lease was renamed: then nobody may hold the old one.
func (t *task) mayClaim(ctx context.Context) func(last statelog.Claimant, wrote time.Time) error {
	return func(last statelog.Claimant, wrote time.Time) error {
		if last.Lease == "" || last.Lease == t.lease.String() {
			return nil
		}
		held, err := election.IsHeld(ctx, t.cluster.Rest, election.ParsePlace(last.Lease))
		if err != nil {
			held = time.Since(wrote) < stillness
		}
		if !held {
			return nil
		}
		return &statelog.LeaseError{Have: last.Lease, Want: t.lease.String()}
	}
}

// self is this member's name in the Lease.
func (t *task) self() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return election.Self(cmp.Or(os.Getenv("POD_NAME"), host, "exporter"), t.member)
}
