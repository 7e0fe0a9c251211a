package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/actors"
	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/control/httpserver"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// fleet are the clusters that one process follows, each as if it were alone. What ends one of them, such as an API
// server that is gone, a certificate that has expired or a disk that is full, ends none of the others, and is tried
// again.
type fleet struct {
	options RunOptions
	cfg     *config.Config
	logger  *slog.Logger
	memory  *memory
	token   control.Token
	server  *httpserver.Server
	shown   *telemetry.Fleet

	mu      sync.Mutex // guards the following
	wanted  []config.ClusterOf
	members map[string]*follower
	uids    map[string]string // of the clusters that are followed, with their names
	left    error             // what those left that are followed no more
}

// follower is one of the clusters.
type follower struct {
	config.ClusterOf
	branch  *httpserver.Branch
	hangups chan os.Signal
	stop    func()                  // waits until it is followed no more
	cut     context.CancelCauseFunc // ends the present attempt; guarded by fleet.mu
}

// clustersPath is where each cluster's own page, status and questions are below.
const clustersPath = "/clusters/"

// Run runs the whole line until ctx ends, or for as long as this exporter leads. Of several clusters it runs one each.
func Run(ctx context.Context, o RunOptions) (err error) {
	if len(o.Config.Clusters) > 0 {
		return runFleet(ctx, o)
	}
	p := &process{
		cfg: o.Config, options: o, token: control.NewToken(), memory: limitMemory(),
		claim: func(string) error { return nil }, follows: func(*telemetry.Telemetry) {},
	}
	p.logger = cluster.NewLogger(console.On(o.ErrOut), o.Config.Log)
	server := &httpserver.Server{Address: o.Config.Listen, StateDir: o.Config.State.Dir, Token: p.token, Logger: p.logger}
	defer func() { err = errors.Join(err, server.Close()) }()
	p.server = server
	p.audit, err = actors.Listen(ctx, o.Config.Audit, p.logger)
	if err != nil {
		return err
	}
	defer p.audit.Stop()
	return p.run(ctx)
}

// runFleet follows all clusters until ctx ends. Which these are is read again at the discovery's interval.
func runFleet(ctx context.Context, o RunOptions) (err error) {
	f := &fleet{
		options: o, cfg: o.Config, memory: limitMemory(), token: control.NewToken(), shown: telemetry.NewFleet(),
		logger: cluster.NewLogger(console.On(o.ErrOut), o.Config.Log), members: map[string]*follower{}, uids: map[string]string{},
	}
	f.server = &httpserver.Server{Address: o.Config.Listen, Token: f.token, Logger: f.logger}
	stopServing, err := f.server.Serve(ctx, f.handler())
	if err != nil {
		return err
	}
	defer func() {
		f.adopt(ctx, nil)
		stopServing()
		err = errors.Join(f.left, f.server.Close())
	}()
	f.adopt(ctx, o.Config.Clusters)
	look := time.NewTicker(time.Duration(o.Config.Discovery.Interval))
	defer look.Stop()
	for said := ""; ; { // why the configuration could not be read again
		select {
		case <-ctx.Done():
			return nil
		case signal := <-o.Hangups: // for a full snapshot of every cluster
			for _, member := range f.members {
				select {
				case member.hangups <- signal:
				default: // it has not answered the last one
				}
			}
		case <-look.C: // only the clusters of the configuration are looked at
			cfg, err := o.Reload()
			if err == nil && len(cfg.Clusters) == 0 {
				err = errors.New("it names no clusters any more: name them again, or start the exporter anew")
			}
			if err == nil {
				said = ""
				f.adopt(ctx, cfg.Clusters)
			} else if err.Error() != said {
				said = err.Error()
				f.logger.Warn("the configuration cannot be read again; the same clusters are followed", "error", err)
			}
		}
	}
}

// adopt follows these clusters, and no other any more. One that is reached in another way begins again.
func (f *fleet) adopt(ctx context.Context, wanted []config.ClusterOf) {
	var leaving []*follower
	f.mu.Lock()
	f.wanted = wanted
	for name, member := range f.members {
		if !slices.Contains(wanted, member.ClusterOf) {
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
	for _, of := range wanted {
		if _, found := f.members[of.Name]; found { // which no other goroutine changes
			continue
		}
		cfg := f.cfg.Of(&of)
		member := &follower{ClusterOf: of, hangups: make(chan os.Signal, 1), branch: f.server.Branch(clustersPath+of.Name, cfg.State.Dir)}
		f.shown.Add(of.Name)
		f.mu.Lock()
		f.members[of.Name] = member
		f.mu.Unlock()
		end := beside.Run(ctx, func(ctx context.Context) { f.keepFollowing(ctx, member, cfg) })
		member.stop = func() {
			end()
			f.shown.Remove(of.Name)
		}
	}
}

// keepFollowing follows the cluster again and again, until ctx ends.
func (f *fleet) keepFollowing(ctx context.Context, member *follower, cfg *config.Config) {
	logger := f.logger.With("task", member.Name)
	o := f.options
	o.Config, o.Hangups = cfg, member.hangups
	o.Access.Kubeconfig, o.Access.Context = member.Kubeconfig, member.Context
	p := &process{
		cfg: cfg, options: o, token: f.token, memory: f.memory, logger: logger, server: member.branch, several: true,
		claim:   func(uid string) error { return f.claim(member.Name, uid) },
		follows: func(t *telemetry.Telemetry) { f.shown.Follows(member.Name, t) },
	}
	said, told := "", time.Time{}
	for wait := listener.RetryForever(); ; {
		began := time.Now()
		err := f.try(ctx, member, p)
		if ctx.Err() != nil {
			if err != nil { // what the stop has left undone
				f.mu.Lock()
				f.left = errors.Join(f.left, fmt.Errorf("cluster %s: %w", member.Name, err))
				f.mu.Unlock()
			}
			return
		}
		if time.Since(began) > time.Minute {
			wait = listener.RetryForever()
		}
		f.shown.Failed(member.Name, err)
		if err.Error() != said || time.Since(told) > sayAgain {
			said, told = err.Error(), time.Now()
			logger.Error("the cluster is not followed now; the others are, and it is tried again", "error", err)
		}
		if !sink.Pause(ctx, wait.NextBackOff(), nil) {
			return
		}
	}
}

// sayAgain is how long the same failure is not told again.
const sayAgain = time.Minute

// try follows the cluster once. The error is nil only where ctx has ended.
func (f *fleet) try(ctx context.Context, member *follower, p *process) error {
	attempt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	f.mu.Lock()
	member.cut = cut
	f.mu.Unlock()
	err := p.run(attempt)
	f.mu.Lock()
	maps.DeleteFunc(f.uids, func(_, of string) bool { return of == member.Name })
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
	place := func(name string) int {
		return slices.IndexFunc(f.wanted, func(of config.ClusterOf) bool { return of.Name == name })
	}
	isTwice := func(name, other string) error {
		return fmt.Errorf("cluster %s is cluster %s (uid %s): leave one of them out, or correct its kubeconfig or context", name, other, uid)
	}
	other, taken := f.uids[uid]
	switch member := f.members[other]; {
	case !taken || other == name:
	case place(other) < place(name):
		return isTwice(name, other)
	case member != nil:
		member.cut(isTwice(other, name))
	}
	f.uids[uid] = name
	return nil
}

// handler serves what is of all clusters, and below clustersPath what is of one.
func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", f.shown.Handler())
	mux.HandleFunc(clustersPath+"{name}/", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		member := f.members[r.PathValue("name")]
		f.mu.Unlock()
		if member == nil {
			http.Error(w, "no such cluster is followed: see /statusz", http.StatusNotFound)
			return
		}
		member.branch.ServeHTTP(w, r)
	})
	return mux
}
