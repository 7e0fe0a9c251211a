package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/source"
)

// saved is what a state says. The zero value is that there is none.
type saved struct {
	running        *control.Running // what the exporter does that runs with it; nil where none runs
	*control.State                  // that is saved; nil where there is none
}

// checkState looks at what is saved. What an exporter that runs with it holds is no problem.
func checkState(ctx context.Context, c *cluster.Cluster, cfg *config.Config, r *console.Findings) saved {
	dir := cfg.State.Dir
	client, err := control.Locate(dir)
	if errors.As(err, new(*control.NotRunningError)) {
		return saved{State: checkSaved(ctx, c, &cfg.State, r)}
	}
	if err != nil {
		r.Note("state " + dir + ": " + err.Error())
		return saved{}
	}
	state, err := client.Checkpoint(ctx)
	running, runningErr := client.Running(ctx)
	if err := errors.Join(err, runningErr); err != nil {
		r.Note(fmt.Sprintf("state %s: an exporter has it, and does not say what it does, so what it holds may be called in use: %v", dir, err))
		return saved{}
	}
	c.Met(state.Clusters)
	compareSaved(c, dir, checkpoint.Cluster{Name: state.Cluster, UID: state.ClusterUID}, r)
	r.Note("state " + dir + ": an exporter runs with it")
	return saved{running, state}
}

// checkSaved reads the state of a stopped exporter, and returns the marks of its sinks.
func checkSaved(ctx context.Context, c *cluster.Cluster, state *config.State, r *console.Findings) *control.State {
	dir := state.Dir
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	switch {
	case errors.Is(err, checkpoint.ErrNoState):
		if err := disk.Creatable(dir); err != nil { // no problem where somebody checks what is to run elsewhere
			r.Note(fmt.Sprintf("state %s: it cannot be made on this host: %v: choose another state.dir, if the exporter is to run here", dir, err))
		} else {
			r.OK("state " + dir + ", which the first start makes")
		}
		return nil
	case errors.Is(err, checkpoint.ErrRestoring) && state.Log != nil:
		r.OK("state " + dir + ", a copy of the log of the state, from which the next start goes on")
		return nil
	case err != nil:
		r.Problem(err)
		return nil
	}
	saved, found, err := store.Cluster()
	read, readErr := control.ReadState(store, true)
	if r.Problem(errors.Join(err, readErr, c.LoadMet(store), c.AdoptIdentity(store), store.Close())) {
		return nil
	}
	if found {
		compareSaved(c, dir, saved, r)
	}
	return read
}

// compareSaved says whose the state is.
func compareSaved(c *cluster.Cluster, dir string, saved checkpoint.Cluster, r *console.Findings) {
	if c.UID == "" {
		return // nobody knows which cluster this is
	}
	anew, err := checkpoint.CompareCluster(dir, saved, checkpoint.Cluster{Name: c.Name, UID: c.UID})
	switch {
	case err != nil:
		r.Problem(usage.Wrap(err))
	case anew:
		r.Note(fmt.Sprintf("state %s: cluster %s was rebuilt since, its uid was %s: a gap and all objects will follow", dir, c.Name, saved.UID))
	default:
		r.OK("state " + dir + " of this cluster")
	}
}

// checkListen looks whether the address is free, unless the running exporter is the one who has it. The remedy says how
// to choose another one.
func checkListen(ctx context.Context, address, remedy string, r *console.Findings) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
		r.Note(fmt.Sprintf("listen on %s: %v: the address is none of this host", address, control.Cause(err)))
		return
	}
	if err != nil {
		r.Problem(fmt.Errorf("listen on %s: %w: choose another address with %s", address, control.Cause(err), remedy))
		return
	}
	if err := listener.Close(); err != nil {
		r.Note(fmt.Sprintf("listen on %s: %v", address, err))
	}
}

// holds says whether the running exporter has a sink of the name open at the address.
func (s *saved) holds(name, address string) bool {
	if s.running == nil {
		return false
	}
	at, known := s.running.Sinks[name]
	return known && at.State != "stopped" && at.Address == address
}

// checkedTask is what exporters would share that have the configuration.
type checkedTask struct {
	to      cluster.Access
	cfg     *config.Config
	cluster *cluster.Cluster
}

func leases(namespace string) change.Stream {
	return change.Stream{Resource: change.Resource{Group: "coordination.k8s.io", Version: "v1", Name: "leases"}, Namespace: namespace}
}

// checkLease says whether the exporter may use its Lease, and changes nothing.
func checkLease(ctx context.Context, of *checkedTask, r *console.Findings) {
	if of.cfg.HA == nil {
		return
	}
	place, err := task.Lease(of.to, of.cfg, of.cluster.Name)
	if r.Problem(err) {
		return
	}
	verbs := []string{"get", "create", "update"}
	if of.cfg.Task.Number > 0 { // among several
		verbs = append(verbs, "list", "delete")
	}
	var missing []string
	client, err := source.NewClient(of.cluster.Leases, 0)
	if err == nil {
		missing, err = client.Forbidden(ctx, leases(place.Namespace), verbs...)
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("ha.lease: the API server forbids to %s leases of group coordination.k8s.io in namespace %s: "+
			"bind a role with these verbs to the exporter's user, or name another Lease", strings.Join(missing, ", "), place.Namespace)
	}
	if err == nil {
		err = task.CheckHolder(ctx, of.cfg, of.cluster, place)
	}
	if !r.Problem(err) {
		r.OK("lease " + place.String())
	}
}
