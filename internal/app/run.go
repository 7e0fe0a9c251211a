package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/kubecdc/kubecdc/internal/app/check"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/page"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source"
)

// run runs the task of one cluster.
func (p *process) run(ctx context.Context) error {
	defer p.memory.ofQueues(p.cfg)()
	if p.cfg.HA != nil {
		return task.Share(ctx, task.Options{
			Access: p.options.Access, Config: p.cfg, Logger: p.logger, Placer: p.placer, Self: p.self, Lead: p.lead, StandBy: p.standBy,
		})
	}
	return task.Alone(ctx, p.logger, p.lead)
}

// lead runs the whole line once, from the state to the state.
func (p *process) lead(ctx context.Context, of *task.Term) (err error) {
	c, err := cluster.Find(ctx, p.options.Access, p.cfg)
	if err != nil {
		return err
	}
	if err := c.Identify(ctx); err != nil {
		return task.IgnoreStop(ctx, err)
	}
	if err := p.claim(c.UID); err != nil {
		return err
	}
	catalog, err := c.Resolve(ctx, c.Rest, p.cfg.Resources)
	if err != nil && !selection.WasServed(ctx, p.cfg, err) {
		return task.IgnoreStop(ctx, err)
	}
	stateLog, err := of.Log(p.cfg, c, p.logger)
	if err == nil {
		err = stateLog.Begin(ctx, of)
	}
	defer func() { err = errors.Join(err, stateLog.GiveUp(ctx)) }()
	if err != nil {
		return task.IgnoreStop(ctx, err)
	}
	store, err := openState(ctx, p.cfg.State.Dir, checkpoint.Options{Logger: p.logger, Journal: stateLog.Journal()})
	if err != nil || store == nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := stateLog.Attach(store); err != nil {
		return err
	}
	if err := p.moves.Begin(ctx, c, store, of); err != nil {
		return task.IgnoreStop(ctx, err)
	}
	if err := c.Claim(store, p.cfg.State.Dir, p.logger); err != nil {
		return err
	}
	if err := errors.Join(c.LoadMet(store), c.AdoptIdentity(store)); err != nil {
		return err
	}
	return (&assembly{process: p, cluster: c, catalog: catalog, store: store, stateLog: stateLog, term: of}).run(ctx)
}

// openState opens the state, or makes it, nil where the exporter is stopped meanwhile: nothing was in line.
func openState(ctx context.Context, dir string, o checkpoint.Options) (*checkpoint.Store, error) {
	store, err := checkpoint.Open(ctx, dir, o)
	if errors.Is(err, checkpoint.ErrNoState) { // where it was to be made
		return nil, fmt.Errorf("make state directory %s: it cannot be created there: choose another with --state-dir, or with state.dir in the configuration", dir)
	}
	return store, task.IgnoreStop(ctx, err)
}

func (a *assembly) run(ctx context.Context) error {
	key := transform.Key{Secret: []byte(a.cfg.RedactKey.Reveal()), Comparable: a.cfg.Hash == "comparable", Cluster: a.cluster.UID}
	if len(key.Secret) == 0 { // the state's own
		var err error
		if key.Secret, err = a.store.RedactionKey(); err != nil {
			return err
		}
	}
	forms := newForms(a.cluster, a.cfg, key)
	a.store.SetForms(forms.ofSink("")) // what goes to disk from now on names them
	deadLetters := deadLettersOf(a.cfg, a.cluster, forms, a.stateLog)
	images := listener.NewImages(a.store)
	f, err := a.prepare(ctx, images, key)
	if err != nil {
		return err
	}
	saved, err := control.ReadState(a.store, false)
	if err != nil {
		return err
	}
	for _, line := range check.Plan(saved, a.cluster, a.cfg) { // for the consumers
		a.logger.Info("the configuration is not that of the last start", "change", line)
	}
	t, shown := a.observed(deadLetters)
	a.follows(t)
	sources, err := f.Start(t)
	if err != nil {
		return err
	}
	sinks, err := destination.BuildAll(a.cfg, a.cluster, destination.Outlet{Stdout: a.options.Out, Told: t, AcceptNewKeys: a.options.AcceptNewKeys})
	if err != nil {
		return err
	}
	if err := narrow(sinks, a.cfg, forms, t.ShapeFailed); err != nil {
		return err
	}
	a.knowNamespaces(sinks)
	a.adoptLetters(ctx, deadLetters, sinks, forms)
	asked := &requests.Handler{
		Config: a.cfg, Cluster: a.cluster, Store: a.store, Logger: a.logger, Request: deadLetters.desk.Request, Steer: deadLetters.desk.Steer,
		Progress: t.Progress, Status: func() any { return t.Status() }, Told: t,
	}
	stopServing, err := a.serve(ctx, handler(t, shown, control.Handler(asked.Questions(deadLetters.replay), asked.Inventory, a.token)))
	if err != nil {
		return err
	}
	defer stopServing()
	stopListening := asked.AnswerHangups(ctx, a.options.Hangups)
	defer stopListening()
	stopHearing, err := asked.Hear(ctx)
	if err != nil {
		return err
	}
	defer stopHearing()
	defer a.stateLog.Run(ctx, statelog.Identity{Cluster: a.cluster.Name, UID: a.cluster.UID, Instance: a.cluster.Instance})()
	defer destination.RunGates(ctx, sinks)()
	defer a.term.Watch(ctx, a.stateLog, t.FailingSince)()
	defer a.moves.Run(ctx, f.Nudge)()
	a.logger.Info("exporter starts", "version", a.options.Access.Version, "cluster", a.cluster.Name, "uid", a.cluster.UID, "server", a.cluster.Rest.Host, "streams", len(sources), "sinks", len(sinks))
	err = pipeline.Run(ctx, pipeline.Config{
		ClusterUID: a.cluster.UID, Sources: sources, Sinks: sinks, Store: a.store, Images: images, Reshape: func(rec *change.Record) error { return forms.reshapeFor("", rec) },
		Desk: deadLetters.desk, StopTimeout: a.options.StopTimeout, Overtaken: a.term.Over, Prove: a.term.Prove(a.stateLog),
		Follow: a.follow(asked, f.Run), Observer: a.term.Observe(a.pipelineObserver(t, f.Nudge)), Push: a.pushAudit(t),
	})
	if err == nil {
		a.logger.Info("exporter stopped; everything that was read is delivered and saved")
	}
	return err
}

// standBy answers that another member leads, and who, until the returned function is called.
func (p *process) standBy(ctx context.Context, m *task.Member) (stop func(), err error) {
	c := m.Cluster
	t := telemetry.New(telemetry.Options{
		Version: p.options.Access.Version, ClusterName: c.Name, ClusterUID: c.UID, Logger: p.logger, Leadership: m.Status, OfFleet: p.several, Task: p.ofSeveral(),
	})
	p.follows(t)
	shown := page.New(page.Options{Status: func() any { return t.Status() }, Private: control.Refusal})
	return p.serve(ctx, handler(t, shown, control.Elsewhere(m.Elsewhere, p.token)))
}

// ofSeveral is the name of the task, "" where the cluster has one alone.
func (p *process) ofSeveral() string {
	if p.cfg.Task.Count == 0 {
		return ""
	}
	return p.cfg.Task.Name()
}

// observed is the telemetry of this run, and the page that shows it.
func (a *assembly) observed(deadLetters *deadLetters) (*telemetry.Telemetry, *page.Page) {
	options := telemetry.Options{
		Version: a.options.Access.Version, ClusterName: a.cluster.Name, ClusterUID: a.cluster.UID, Logger: a.logger,
		StateLog: a.stateLog.Status(), Leadership: a.term.Status, OfFleet: a.several, Task: a.ofSeveral(),
		CountLetters: func(sinkName string) (int, error) { return deadLetters.dirs[sinkName].Count() },
		CountObjects: func(sinkName string, stream change.Stream) (int, error) {
			return a.store.CountRows(sinkName, stream.Resource.String(), checkpoint.ScopeOf(&stream))
		},
		Sinks:   map[string]telemetry.Place{},
		Partial: selection.Following(&a.cluster.Current, func(s *selection.Selected) bool { return s.Selection != source.Selection{} }),
	}
	for _, s := range a.cluster.Streams() {
		options.Streams = append(options.Streams, s.Stream)
	}
	queues, records, spools := map[string]int{}, map[string]int{}, map[string]int64{}
	for i := range a.cfg.Sinks {
		s := &a.cfg.Sinks[i]
		place := telemetry.Place{Kind: s.Kind(), Format: s.Format}
		if d, err := destination.Of(s, a.cluster); err == nil { // else building the sinks says so
			place.Address = d.Address
		}
		options.Sinks[s.Name] = place
		queues[s.Name], records[s.Name] = int(s.Queue.Bytes), s.Queue.Records
		if s.Queue.Spool > 0 {
			spools[s.Name] = int64(s.Queue.Spool)
		}
	}
	var t *telemetry.Telemetry
	shown := page.New(page.Options{Status: func() any { return t.Status() }, Queues: queues, Records: records, Spools: spools, Private: control.Refusal})
	options.Received = shown.Received
	t = telemetry.New(options)
	return t, shown
}

// handler serves what telemetry and the page show to everybody, and what an operator asks to this host.
func handler(t *telemetry.Telemetry, shown *page.Page, questions http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", t.Handler())
	for _, path := range control.Paths() {
		mux.Handle(path, questions)
	}
	shown.Register(mux)
	return mux
}

// The exit codes.
const (
	exitFailed = 1 // failed while running
	ExitUsage  = 2 // wrong usage or configuration
)

// ExitCode tells scripts whether the same command may go better the next time, once what is around it is mended, or
// only after somebody changed the command or the configuration.
func ExitCode(err error) int {
	isRefused := errors.As(err, new(*config.Problems)) || errors.As(err, new(*checkpoint.FormatError)) || errors.As(err, new(*control.RefusedError))
	if isRefused || usage.Is(err) || statelog.IsForGood(err) {
		return ExitUsage
	}
	return exitFailed
}
