package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/control/httpserver"
	"github.com/kubecdc/kubecdc/internal/ha/election"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// fleet are the tasks of one process: clusters, or shares of their resources, each as if it were alone. What ends one
// of them, such as an API server that is gone, a certificate that has expired or a disk that is full, ends none of the
// others, and is tried again. With ha, other processes have the same tasks, and the placement says who does which.
type fleet struct {
	options RunOptions
	cfg     *config.Config
	logger  *slog.Logger
	memory  *memory
	token   control.Token
	server  *httpserver.Server
	shown   *telemetry.Fleet
	// nil without ha
	placement *election.Placement
	self      string
	name      string // of the cluster where it is a single one
	retired   chan config.Task

	mu      sync.Mutex // guards the following
	wanted  []config.Task
	members map[string]*follower
	read    map[string]string // hashes of kubeconfigs, by cluster; of runFleet's goroutine
	leases  map[string]string // the names of the tasks' Leases, with the tasks
	left    error             // what those left that are followed no more
}

// follower is one of the tasks.
type follower struct {
	config.Task
	branch  *httpserver.Branch
	hangups chan os.Signal
	stop    func()                  // waits until it is followed no more
	cut     context.CancelCauseFunc // ends the present attempt; guarded by fleet.mu
	uid     string                  // of the cluster that it follows now, "" is none; likewise
}

// tasksPath is where each task's own page, status and questions are below.
const tasksPath = "/tasks/"

// Run runs the whole line until ctx ends, or for as long as this exporter leads. Of several tasks it runs one each.
func Run(ctx context.Context, o RunOptions) (err error) {
	if o.Config.IsSplit() {
		return runFleet(ctx, o)
	}
	p := &process{
		cfg: o.Config, options: o, token: control.NewToken(), memory: limitMemory(),
		claim: func(string) error { return nil }, follows: func(*telemetry.Telemetry) {},
	}
	p.logger = cluster.NewLogger(console.On(o.ErrOut), o.Config.Log)
	p.moves = task.NewMoves(o.Config, p.logger, func(int) {}) // of one task alone, others are somebody else's
	server := &httpserver.Server{Address: o.Config.Listen, StateDir: o.Config.State.Dir, Token: p.token, Logger: p.logger}
	defer func() { err = errors.Join(err, server.Close()) }()
	p.serve = server.Serve
	audit, stopAudit, err := listenAudit(ctx, o.Config.Audit, p.logger)
	if err != nil {
		return err
	}
	defer stopAudit()
	p.audit = audit
	return p.run(ctx)
}

// runFleet does all tasks until ctx ends. Which clusters there are is read again at the discovery's interval.
func runFleet(ctx context.Context, o RunOptions) (err error) {
	f := &fleet{
		options: o, cfg: o.Config, memory: limitMemory(), token: control.NewToken(), shown: telemetry.NewFleet(),
		logger: cluster.NewLogger(console.On(o.ErrOut), o.Config.Log), members: map[string]*follower{},
		read: map[string]string{}, retired: make(chan config.Task, 1),
	}
	f.server = &httpserver.Server{Address: o.Config.Listen, Token: f.token, Logger: f.logger}
	stopPlacing, err := f.place(ctx) // before anybody asks what it knows
	if err != nil {
		return err
	}
	defer stopPlacing()
	stopServing, err := f.server.Serve(ctx, f.handler())
	if err != nil {
		return err
	}
	defer func() {
		f.adopt(ctx, nil)
		stopServing()
		err = errors.Join(err, f.left, f.server.Close())
	}()
	f.reread(ctx, o.Config.Clusters)
	f.adopt(ctx, o.Config.AllTasks())
	look := time.NewTicker(time.Duration(o.Config.Discovery.Interval))
	defer look.Stop()
	var extra []config.Task
	for said := ""; ; { // why the configuration could not be read again
		select {
		case <-ctx.Done():
			return nil
		case of := <-f.retired:
			if !slices.Contains(extra, of) {
				extra = append(extra, of)
				f.adopt(ctx, slices.Concat(f.wanted, []config.Task{of}))
			}
		case signal := <-o.Hangups: // for a full snapshot of every cluster
			for _, member := range f.members {
				select {
				case member.hangups <- signal:
				default: // it has not answered the last one
				}
			}
		case <-look.C: // only the clusters of the configuration are looked at
			cfg, err := o.Reload()
			if err == nil && len(cfg.Clusters) == 0 != (len(o.Config.Clusters) == 0) {
				err = errors.New("it names clusters now, or none any more: change that back, or start the exporter anew")
			}
			if err == nil {
				said, cfg.Tasks = "", o.Config.Tasks
				f.reread(ctx, cfg.Clusters)
				extra = slices.DeleteFunc(extra, func(of config.Task) bool {
					return len(cfg.Clusters) > 0 && !slices.Contains(cfg.Clusters, of.Cluster)
				})
				f.adopt(ctx, slices.Concat(cfg.AllTasks(), extra))
			} else if err.Error() != said {
				said = err.Error()
				f.logger.Warn("the configuration cannot be read again; the same clusters are followed", "error", err)
			}
		}
	}
}

// reread notes what each cluster's kubeconfig is now, so that credentials that somebody has renewed are taken. One that
// cannot be read is as it was: whoever needs it says so.
func (f *fleet) reread(ctx context.Context, clusters []config.ClusterOf) {
	bounded, cancel := context.WithTimeout(ctx, time.Duration(f.cfg.Discovery.Interval))
	defer cancel()
	for i := range clusters {
		of := &clusters[i]
		to := f.options.Access.Of(*of)
		if text, err := to.Read(bounded); err == nil {
			f.read[of.Name] = fmt.Sprintf("%x", sha256.Sum256(text))
		}
		of.Read = f.read[of.Name]
	}
}

// place begins to share the tasks with other exporters, where there may be any, until the returned stop.
func (f *fleet) place(ctx context.Context) (stop func(), err error) {
	stop = func() {}
	if f.cfg.HA == nil {
		return stop, nil
	}
	home := f.options.Access
	c, err := cluster.Find(ctx, home, f.cfg)
	if err != nil {
		return stop, err
	}
	if f.name = c.Name; len(f.cfg.Clusters) > 0 {
		f.options.Access.Home = &home
	}
	if f.self, err = task.SelfIn(f.cfg.State.Dir); err != nil {
		return stop, err
	}
	tasks := f.cfg.AllTasks()
	lease, err := f.leaseOf(tasks[0])
	if err != nil {
		return stop, err
	}
	f.placement, err = election.NewPlacement(election.PlacementOptions{
		Config: c.Leases, Place: election.Place{Namespace: lease.Namespace, Name: election.NameOf(f.self)}, Self: f.self,
		Duration: time.Duration(f.cfg.HA.Duration), Leaving: func() bool { return ctx.Err() != nil }, Logger: f.logger,
	})
	if err != nil {
		return stop, err
	}
	f.shown.Unowned = f.unowned
	return background.Run(context.WithoutCancel(ctx), f.placement.Run), nil
}

// leaseOf is the Lease of the task.
func (f *fleet) leaseOf(of config.Task) (election.Place, error) {
	return task.Lease(f.options.Access, f.cfg.Of(of), cmp.Or(of.Cluster.Name, f.name))
}

// adopt does these tasks, and no other any more. One whose cluster is reached in another way begins again.
func (f *fleet) adopt(ctx context.Context, wanted []config.Task) {
	var leaving []*follower
	f.mu.Lock()
	f.wanted = wanted
	for name, member := range f.members {
		if !slices.Contains(wanted, member.Task) {
			leaving = append(leaving, member)
			delete(f.members, name)
		}
	}
	f.mu.Unlock()
	var group sync.WaitGroup
	for _, member := range leaving {
		group.Go(member.stop)
	}
	group.Wait()
	if f.placement != nil && len(wanted) > 0 {
		leases := map[string]string{}
		for _, of := range wanted {
			if lease, err := f.leaseOf(of); err == nil && of.Number <= max(of.Count, 1) { // else the task's own attempt says so
				leases[lease.Name] = of.Name()
			}
		}
		f.mu.Lock()
		f.leases = leases
		f.mu.Unlock()
		f.placement.SetTasks(slices.Sorted(maps.Keys(leases)))
	}
	for _, of := range wanted {
		name := of.Name()
		if _, found := f.members[name]; found { // which no other goroutine changes
			continue
		}
		cfg := f.cfg.Of(of)
		member := &follower{Task: of, hangups: make(chan os.Signal, 1), branch: f.server.Branch(tasksPath+name, cfg.State.Dir)}
		f.shown.Add(name)
		f.mu.Lock()
		f.members[name] = member
		f.mu.Unlock()
		end := background.Run(ctx, func(ctx context.Context) { f.keepFollowing(ctx, member, cfg) })
		member.stop = func() {
			end()
			f.shown.Remove(name)
		}
	}
}

// retire has a task done that there is no more, until it has given away what it has.
func (f *fleet) retire(of config.ClusterOf, number int) {
	select {
	case f.retired <- config.Task{Cluster: of, Number: number, Count: f.cfg.Tasks}:
	default: // it is asked for again
	}
}

// unowned are the tasks that no exporter has.
func (f *fleet) unowned() (tasks []string) {
	f.mu.Lock()
	of := f.leases
	f.mu.Unlock()
	for _, lease := range f.placement.Unowned() {
		tasks = append(tasks, of[lease])
	}
	return tasks
}

// keepFollowing does the task again and again, until ctx ends.
func (f *fleet) keepFollowing(ctx context.Context, member *follower, cfg *config.Config) {
	name, logger := member.Name(), f.logger.With("task", member.Name())
	o := f.options
	o.Config, o.Hangups = cfg, member.hangups
	if of := member.Cluster; of.Name != "" {
		o.Access = o.Access.Of(of)
	}
	p := &process{
		cfg: cfg, options: o, token: f.token, memory: f.memory, logger: logger, serve: member.branch.Serve, several: true,
		moves: task.NewMoves(cfg, logger, func(number int) { f.retire(member.Cluster, number) }), self: f.self,
		claim:   func(uid string) error { return f.claim(name, uid) },
		follows: func(t *telemetry.Telemetry) { f.shown.Follows(name, t) },
	}
	if f.placement != nil {
		p.placer = f.placement.Join
	}
	said, told := "", time.Time{}
	for wait := listener.RetryForever(); ; {
		began := time.Now()
		err := f.try(ctx, member, p)
		if ctx.Err() != nil {
			if err != nil { // what the stop has left undone
				f.mu.Lock()
				f.left = errors.Join(f.left, fmt.Errorf("task %s: %w", name, err))
				f.mu.Unlock()
			}
			return
		}
		if time.Since(began) > time.Minute {
			wait = listener.RetryForever()
		}
		f.shown.Failed(name, err)
		if err.Error() != said || time.Since(told) > time.Minute {
			said, told = err.Error(), time.Now()
			logger.Error("the task is not done now; the others are, and it is tried again", "error", err)
		}
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
			return
		}
	}
}

// try does the task once. The error is nil only where ctx has ended.
func (f *fleet) try(ctx context.Context, member *follower, p *process) error {
	attempt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	f.mu.Lock()
	member.cut = cut
	f.mu.Unlock()
	err := p.run(attempt)
	f.mu.Lock()
	member.uid = ""
	f.mu.Unlock()
	if cause := context.Cause(attempt); ctx.Err() == nil && cause != nil {
		return cause
	}
	if err == nil && ctx.Err() == nil {
		err = errors.New("it has ended by itself")
	}
	return err
}

// claim refuses a cluster that is followed already, under another name: its records would be told twice. The name that
// the configuration has first counts.
func (f *fleet) claim(name, uid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	isTwice := func(one, other *follower) error {
		return fmt.Errorf("cluster %s is cluster %s (uid %s): leave one of them out, or correct its kubeconfig or context", one.Cluster.Name, other.Cluster.Name, uid)
	}
	us := f.members[name]
	if us == nil {
		return nil // it has just left
	}
	for _, member := range f.members {
		switch {
		case member.uid != uid || member.Cluster.Name == us.Cluster.Name:
		case slices.Index(f.wanted, member.Task) < slices.Index(f.wanted, us.Task):
			return isTwice(us, member)
		default:
			member.cut(isTwice(member, us))
		}
	}
	us.uid = uid
	return nil
}

// handler serves what is of all tasks, and below tasksPath what is of one.
func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", f.shown.Handler())
	mux.HandleFunc(tasksPath+"{name}/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		member := f.members[r.PathValue("name")]
		f.mu.Unlock()
		if member == nil {
			http.Error(w, "there is no such task: see /statusz", http.StatusNotFound)
			return
		}
		member.branch.ServeHTTP(w, r)
	})
	return mux
}
