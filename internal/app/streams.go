package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/app/check"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/audit/webhook"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/ha/election"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// prepare makes what follows the server, and has the streams of the start chosen.
func (a *assembly) prepare(ctx context.Context, images *listener.Images, key transform.Key) (*selection.Follower, error) {
	client, err := source.NewClient(a.cluster.Rest, a.manyStreams())
	if err != nil {
		return nil, err
	}
	f := &selection.Follower{
		Config: a.cfg, Current: &a.cluster.Current, Catalog: a.catalog, Store: a.store, Logger: a.logger, Admits: a.moves.Admits,
		Nudged: sink.NewBell(),
	}
	gate, rate := make(source.Gate, listsAtOnce), source.NewRate(a.cfg.Snapshot.ObjectsPerSecond)
	if a.cfg.AsksNamespaces() {
		saved, err := a.store.Namespaces()
		if err != nil {
			return nil, err
		}
		failed := func(err error) {
			a.logger.Warn("labels of namespaces cannot be followed; streams that need one wait", "error", err)
		}
		a.namespaces, err = source.NewNamespaces(ctx, source.NamespacesConfig{
			Rest: a.cluster.Rest, Saved: saved, Save: a.store.SetNamespace, Failed: failed,
		})
		if err != nil {
			return nil, err
		}
	}
	f.Build = func(s selection.Selected) (made pipeline.Source, informer *source.SharedInformer, err error) {
		shape, err := selection.ShapeOf(&s, key, f.Telemetry.ShapeFailed)
		form, formErr := selection.FormOf(&s, key, a.cfg)
		ignore, ignoreErr := selection.IgnoreOf(&s)
		if err = cmp.Or(err, formErr, ignoreErr); err == nil {
			err = a.store.KeepObjects(s.Stream.String(), form)
		}
		if err != nil {
			return made, nil, err
		}
		of := source.Config{
			Client: client, Stream: s.Stream, Selection: s.Selection, Histories: &histories{a.store, a.cluster}, ClusterUID: a.cluster.UID,
			Shape: shape, Keep: selection.KeepOf(s.Configured), Observer: sourceObserver(f), Gate: gate, Rate: rate,
			Ignore: ignore, BeforeHidden: !s.Configured.Before, Involve: selection.InvolveOf(&s, &a.cluster.Current, images.Images),
		}
		if s.Configured.IsKept() {
			of.Kept = images.Images
		}
		if a.asksNamespaces(&s) {
			of.Namespace = func(rec *change.Record) (err error) {
				rec.NamespaceLabels, err = a.namespaces.Labels(rec.Key.Namespace)
				return err
			}
		}
		informer = source.NewSharedInformer(of)
		return a.memory.of(selection.SourceOf(s.Stream, informer)), informer, nil
	}
	return f, f.Adopt()
}

// listsAtOnce is how many streams begin a comparison at the same time.
const listsAtOnce = 32

// manyStreams is how many streams there may be at once: a wildcard can stand for any number, some day.
func (a *assembly) manyStreams() int {
	isWildcard := func(r config.Resource) bool { return source.IsWildcard(r.Name) }
	chosen := a.cluster.Chosen.Load()
	if slices.ContainsFunc(a.cfg.Resources, isWildcard) || chosen != nil && len(chosen.Waiting()) > 0 {
		return math.MaxInt
	}
	return len(a.cluster.Streams())
}

// asksNamespaces says whether what becomes of the stream's records depends on labels of namespaces.
func (a *assembly) asksNamespaces(s *selection.Selected) bool {
	asks := s.AsksNamespace()
	for i := range a.cfg.Sinks {
		to := &a.cfg.Sinks[i]
		wants := a.cluster.WantedBy(to)
		asks = asks || to.AsksNamespaces() && (wants == nil || wants(&s.Stream))
	}
	return asks && !s.Stream.Resource.ClusterScoped
}

// knowNamespaces tells the sinks' rules and templates the labels of a namespace, of what comes back from disk.
func (a *assembly) knowNamespaces(sinks []listener.Sink) {
	if a.namespaces == nil {
		return
	}
	for i := range sinks {
		rules := sinks[i].Narrow
		sinks[i].Narrow = func(rec *change.Record) *change.Record {
			if rec.NamespaceLabels == nil && rec.Op.OfObject() && rec.Key.Namespace != "" {
				own := *rec
				own.NamespaceLabels = a.namespaces.Known(rec.Key.Namespace)
				rec = &own
			}
			if rules == nil {
				return rec
			}
			return rules(rec)
		}
	}
}

// follow follows the server's resources, and beside that labels of namespaces: when they change, what they choose is
// told anew.
func (a *assembly) follow(
	asked *requests.Handler, streams func(context.Context, *pipeline.StreamSet) error,
) func(context.Context, *pipeline.StreamSet) error {
	if a.namespaces == nil {
		return streams
	}
	a.namespaces.Changed = asked.NamespaceChanged
	return func(ctx context.Context, set *pipeline.StreamSet) error {
		ctx, end := context.WithCancel(ctx)
		var namespaces sync.WaitGroup
		namespaces.Go(func() { a.namespaces.Run(ctx) })
		defer namespaces.Wait()
		defer end()
		return streams(ctx, set)
	}
}

// histories are those of the state. A cluster that is met is one whose records in a log are ours.
type histories struct {
	*checkpoint.Store
	cluster *cluster.Cluster
}

// Met is as in source.Histories.
func (h *histories) Met(uid string) (checkpoint.History, error) {
	history, err := h.Store.Met(uid)
	return history, errors.Join(err, h.cluster.LoadMet(h.Store))
}

// sourceObserver tells the follower of resources that are not where they were.
func sourceObserver(f *selection.Follower) source.Observer {
	t := f.Telemetry
	failed := func(stream change.Stream, err error) {
		why := telemetry.Failed
		switch {
		case source.IsGone(err):
			why = telemetry.Expired
		case apierrors.IsUnauthorized(err):
			why = telemetry.Refused
		case source.IsUnreachable(err):
			why = telemetry.Unreachable
		case apierrors.IsNotFound(err):
			why = telemetry.Unserved
			defer f.Nudge()
		}
		t.StreamFailed(stream, why, err)
	}
	return source.Observer{
		Watching: t.Watching, Failed: failed, Received: t.Received, Ignored: t.Ignored,
		Comparing: t.Comparing, Listed: t.Listed, Abandoned: t.Abandoned, Compared: t.Compared, Corrected: t.Corrected, Unreadable: t.Unreadable,
	}
}

// pipelineObserver tells the telemetry, and has the state keep the configuration with which a sink is open, for the
// next start to compare with.
func (a *assembly) pipelineObserver(t *telemetry.Telemetry, nudge func()) pipeline.Observer {
	opened := func(name string, found int) {
		t.Opened(name, found)
		at := slices.Index(a.cfg.SinkNames(), name)
		text, err := check.Record(a.cluster, a.cfg, &a.cfg.Sinks[at])
		if err = cmp.Or(err, a.store.SetConfiguration(name, text)); err != nil {
			a.logger.Warn("the configuration is not saved; the next start cannot say what another one changes", "sink", name, "error", err)
		}
	}
	return pipeline.Observer{
		Observer: listener.Observer{
			Queued: t.Queued,
			Opened: opened, Written: t.Written, Failed: t.SinkFailed, Stopped: t.Stopped, Rejected: t.Rejected, Coalesced: t.Coalesced,
			NotKept: t.NotKept, Dropped: t.Dropped, Trimmed: t.Trimmed, Replayed: t.Replayed,
			Committed: t.Committed, CommitFailed: t.CommitFailed,
		},
		Left: func(stream change.Stream) {
			t.StreamOver(stream)
			nudge() // it may be back
		},
	}
}

// RunOptions are what a run is to do, and how it and those who started it speak to each other.
type RunOptions struct {
	Access  cluster.Access
	Config  *config.Config
	Out     io.Writer        // records for standard output
	ErrOut  io.Writer        // log lines
	Hangups <-chan os.Signal // each asks for a full snapshot; nil is none
	// Reload reads the configuration again, where it is of several clusters, which may be others.
	Reload func() (*config.Config, error)
	// AcceptNewKeys ends the old keys of tables whose keys have changed since the last run.
	AcceptNewKeys bool
	StopTimeout   time.Duration // how long a stop may take to deliver what is queued
}

// process is what outlives the single runs of an exporter.
type process struct {
	cfg     *config.Config
	options RunOptions
	logger  *slog.Logger
	token   control.Token // that an operator's questions have to show
	serve   func(ctx context.Context, handler http.Handler) (stop func(), err error)
	claim   func(uid string) error       // of the cluster, which may be followed already
	follows func(t *telemetry.Telemetry) // is told who knows how it stands
	several bool                         // it is one of a fleet
	moves   *task.Moves
	placer  election.Placer // of the fleet; nil is none
	self    string          // its exporter's name; "" is one of its own
	audit   *webhook.Server // nil is none
	memory  *memory
}

// assembly is everything that a run is made of.
type assembly struct {
	*process
	cluster  *cluster.Cluster
	catalog  *source.Catalog // what the server served when it was asked last
	store    *checkpoint.Store
	stateLog *task.StateLog // nil is none
	term     *task.Term
	// namespaces are followed where something is chosen by their labels; nil where nothing is.
	namespaces *source.Namespaces
}

const (
	// besideQueues is what the process needs beside full queues, in bytes, with room for the collector to be lazy in.
	besideQueues = 80 << 20
	// perStream is what a stream needs beside that, in bytes: a watch with its buffers, the Reflector, a decoder, its
	// position. Each of 2,500 quiet ones had 83 KiB (go run ./bench/idle -resources 2500, compared with 100). Twice as
	// many leave the collector its room.
	perStream = 160 << 10
)

// memory is the soft limit at which the garbage collector works harder, for when queues are full (I6). They hold as
// many bytes, and streams come and go, so the limit is never below what is in use: a collector that cannot get below
// its limit takes half of the processors for nothing.
type memory struct {
	set func(limit int64) // nil is no limit of ours

	mu      sync.Mutex // guards the following, and is held while the limit is set
	queues  int64      // bytes that all of them hold
	streams int
}

// limitMemory sets the limit of a process without queues and streams. GOMEMLIMIT in the environment wins.
func limitMemory() *memory {
	m := &memory{}
	if os.Getenv("GOMEMLIMIT") == "" {
		m.set = func(limit int64) { debug.SetMemoryLimit(limit) }
	}
	m.add(0, 0)
	return m
}

// ofQueues makes room for the configuration's queues, until the returned function is called.
func (m *memory) ofQueues(cfg *config.Config) (gone func()) {
	var queues int64
	for i := range cfg.Sinks {
		queues += int64(cfg.Sinks[i].Queue.Bytes)
	}
	m.add(queues, 0)
	return func() { m.add(-queues, 0) }
}

// of makes room for a stream while its source runs.
func (m *memory) of(source pipeline.Source) pipeline.Source {
	run := source.Run
	source.Run = func(ctx context.Context, sinks []*listener.Intake) (over bool) {
		m.add(0, 1)
		defer m.add(0, -1)
		return run(ctx, sinks)
	}
	return source
}

// add is told of queues, in bytes, and of streams that have come, or gone. Its cost does not depend on how many there
// are.
func (m *memory) add(queues int64, streams int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues += queues
	m.streams += streams
	if m.set != nil {
		m.set(besideQueues + m.queues + int64(m.streams)*perStream)
	}
}
