package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Run runs the whole line until ctx ends, or for as long as this exporter leads.
func Run(ctx context.Context, o RunOptions) (err error) {
	p := &process{cfg: o.Config, options: o, progress: console.NewProgress(o.ErrOut, o.draws()), token: control.NewToken(), door: &door{address: o.Config.Listen}, memory: limitMemory(o.Config)}
	p.logger = newLogger(p.progress, o.Config.Log)
	p.progress.Logger = p.logger
	defer func() { err = errors.Join(err, p.door.close()) }()
	if o.Config.HA != nil {
		return p.share(ctx)
	}
	return p.alone(ctx)
}

// alone runs the line again and again. Where a sink's log was read too early, since an earlier exporter's last words
// came behind that, the line stops and begins anew: as after a crash, but the process stays.
func (p *process) alone(ctx context.Context) error {
	for wait := delivery.RetryForever(); ; {
		err := p.runOnce(ctx, nil)
		if !delivery.IsLate(err) || ctx.Err() != nil {
			return err
		}
		p.logger.Warn(readTooEarly, "error", err)
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

const readTooEarly = "a sink's log was read too early; everything begins anew where it is saved"

// runOnce runs the whole line once, from the state to the state.
func (p *process) runOnce(ctx context.Context, of *term) (err error) {
	c, err := findCluster(p.options.Access, p.cfg)
	if err != nil {
		return err
	}
	if err := c.identify(ctx); err != nil {
		return ignoreStop(ctx, err)
	}
	catalog, err := c.Resolve(ctx, c.rest, p.cfg.Resources)
	if err != nil && !selection.WasServed(ctx, p.cfg, err) {
		return ignoreStop(ctx, err)
	}
	stateLog, err := newStateLog(p.cfg, c, p.logger)
	if err == nil {
		err = stateLog.begin(ctx, of)
	}
	defer func() { err = errors.Join(err, stateLog.giveUp(ctx)) }()
	if err != nil {
		return ignoreStop(ctx, err)
	}
	store, err := openState(ctx, p.cfg.State.Dir, checkpoint.Options{Logger: p.logger, Journal: stateLog.journal()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := stateLog.attach(store); err != nil {
		return err
	}
	if err := claim(store, p.cfg.State.Dir, c, p.logger); err != nil {
		return err
	}
	if err := errors.Join(c.recall(store), c.embody(store)); err != nil {
		return err
	}
	return (&assembly{p, c, catalog, store, stateLog, of}).run(ctx)
}

// openState opens the state, or makes it.
func openState(ctx context.Context, dir string, opts checkpoint.Options) (*checkpoint.Store, error) {
	store, err := checkpoint.Open(ctx, dir, opts)
	if errors.Is(err, checkpoint.ErrNoState) { // where it was to be made
		return nil, fmt.Errorf("make state directory %s: it cannot be created there: choose another with --state-dir, or with state.dir in the configuration", dir)
	}
	return store, err
}

// claim ties the state to the cluster. A cluster that was made anew behind the same name is a new epoch: each stream
// finds that its position is of another one.
func claim(store *checkpoint.Store, dir string, c *cluster, logger *slog.Logger) error {
	now := checkpoint.Cluster{Name: c.name, UID: c.uid}
	saved, found, err := store.Cluster()
	if err != nil {
		return err
	}
	if !found {
		return store.SetCluster(now)
	}
	match, err := checkpoint.CompareCluster(dir, saved, now)
	if err != nil {
		return usage.Wrap(err)
	}
	if match == checkpoint.NewEpoch {
		logger.Warn("cluster rebuilt under the same name; starting a new epoch", "cluster", c.name, "uid", c.uid, "savedUid", saved.UID)
		return store.SetCluster(now)
	}
	return nil
}

func (a *assembly) run(ctx context.Context) error {
	forms, err := a.forms()
	if err != nil {
		return err
	}
	deadLetters := deadLettersOf(a.cfg, a.cluster, forms, a.stateLog)
	images := line.NewImages(a.store)
	f, err := a.prepare(images, forms.key)
	if err != nil {
		return err
	}
	t, shown, err := a.observed(deadLetters)
	if err != nil {
		return err
	}
	sources, err := f.Start(t)
	if err != nil {
		return err
	}
	sinks, err := buildSinks(a.cfg, a.cluster, outlet{a.options.Out, t})
	if err != nil {
		return err
	}
	if err := narrow(sinks, a.cfg, forms, t.ShapeFailed); err != nil {
		return err
	}
	deadLetters.keepFor(sinks)
	a.reshapeLetters(ctx, deadLetters, sinks, forms)
	requests, owing := make(chan pipeline.Request), &snapshots{store: a.store, telemetry: t, orders: make(chan pipeline.Order)}
	stopServing, err := a.serve(ctx, withPage(shown, a.handler(t.Handler(), a.controls(requests, owing, deadLetters))))
	if err != nil {
		return err
	}
	defer stopServing()
	stopListening := a.answerHangups(ctx, requests)
	defer stopListening()
	stopHearing, err := (clerk{a, requests, owing, func() any { return t.Status() }, t}).hear(ctx)
	if err != nil {
		return err
	}
	defer stopHearing()
	defer a.stateLog.run(ctx, statelog.Identity{Cluster: a.cluster.name, UID: a.cluster.uid, Instance: a.cluster.instance})()
	defer runSchemas(ctx, sinks)()
	a.logger.Info("exporter starts", "version", a.options.Access.Version, "cluster", a.cluster.name, "uid", a.cluster.uid, "server", a.cluster.rest.Host, "streams", len(sources), "sinks", len(sinks))
	err = pipeline.Run(ctx, pipeline.Config{
		ClusterUID: a.cluster.uid, Sources: sources, Sinks: sinks, Store: a.store, Images: images, Reshape: forms.reshape,
		Requests: requests, Orders: owing.orders, Replays: deadLetters.replays, StopTimeout: a.options.StopTimeout, Lost: a.term.lost(),
		Follow: owing.follow(f.RunWith(t)), Observer: a.term.observe(pipelineObserver(t, f.Nudge)),
	})
	if err == nil {
		a.logger.Info("exporter stopped; everything that was read is delivered and saved")
	}
	return err
}

// ignoreStop is nil where the error is only our own stop.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
