package app

import (
	"fmt"
	"math"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/telemetry"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// prepare makes what follows the server, and has the streams of the start chosen.
func (a *assembly) prepare(images *line.Images, key transform.Key) (*selection.Follower, error) {
	client, err := source.NewClient(a.cluster.Rest, a.manyStreams())
	if err != nil {
		return nil, err
	}
	spread, err := spreadOf(a.store)
	if err != nil {
		return nil, err
	}
	f := selection.NewFollower(selection.Setting{Config: a.cfg, Current: &a.cluster.Current, Catalog: a.catalog, Store: a.store, Logger: a.logger})
	gate, rate := source.NewGate(listsAtOnce), source.NewRate(a.cfg.Snapshot.ObjectsPerSecond)
	f.Build = func(s selection.Selected) (pipeline.Source, *source.Session, error) {
		return a.source(&s, &means{client, gate, rate, images, key, spread}, f)
	}
	return f, f.Adopt()
}

// listsAtOnce is how many streams begin a reconcile at the same time.
const listsAtOnce = 32

// manyStreams is how many streams there may be at once: a wildcard can stand for any number, some day.
func (a *assembly) manyStreams() int {
	for i := range a.cfg.Resources {
		if source.IsWildcard(a.cfg.Resources[i].Name) {
			return math.MaxInt
		}
	}
	if chosen := a.cluster.Chosen.Load(); chosen != nil && len(chosen.Waiting()) > 0 {
		return math.MaxInt
	}
	return len(a.cluster.Streams())
}

// means are what all streams share.
type means struct {
	client *source.Client
	gate   *source.Gate
	rate   *source.Rate
	images *line.Images
	key    transform.Key   // of the hashes
	spread map[string]bool // the resources that the state has streams of single namespaces of
}

// source makes a selected stream one of the pipeline's.
func (a *assembly) source(wanted *selection.Selected, m *means, f *selection.Follower) (pipeline.Source, *source.Session, error) {
	shapeFailed := func(rec *change.Record, err error) { f.Telemetry.ShapeFailed(rec, err) }
	shape, err := selection.ShapeOf(wanted, m.key, shapeFailed)
	if err != nil {
		return pipeline.Source{}, nil, err
	}
	name := wanted.Stream.String()
	form, err := selection.FormOf(wanted, m.key, a.cfg)
	if err != nil {
		return pipeline.Source{}, nil, err
	}
	if err := a.inherit(wanted.Stream, m.spread); err != nil {
		return pipeline.Source{}, nil, err
	}
	if err := a.store.KeepObjects(name, form); err != nil {
		return pipeline.Source{}, nil, err
	}
	ignore, err := selection.IgnoreOf(wanted)
	if err != nil {
		return pipeline.Source{}, nil, err
	}
	session := source.NewSession(source.Config{
		Client: m.client, Stream: wanted.Stream, Selection: wanted.Selection, Inventory: a.store, ClusterUID: a.cluster.UID,
		Meet: a.cluster.Meet(a.store), Shape: shape, Keep: selection.KeepOf(wanted.Configured), Observer: a.progress.Observe(sourceObserver(f)), Gate: m.gate, Rate: m.rate, Images: selection.ImagesOf(wanted, m.images),
		Ignore: ignore, BeforeHidden: !wanted.Configured.Before, Involve: selection.InvolveOf(wanted, &a.cluster.Current, m.images),
	}, func() (source.Saved, error) { return selection.SavedOf(a.store, name, a.hasSink) })
	return a.memory.of(selection.SourceOf(wanted.Stream, session, shape)), session, nil
}

// spreadOf finds the resources that the state has streams of single namespaces of.
func spreadOf(store *checkpoint.Store) (map[string]bool, error) {
	known, err := store.Streams()
	if err != nil {
		return nil, fmt.Errorf("read which streams the state has: %w", err)
	}
	resources := map[string]bool{}
	for _, name := range known {
		if _, resource, found := strings.Cut(name, "/"); found {
			resources[resource] = true
		}
	}
	return resources, nil
}

// inherit gives the stream what is known of streams of other namespaces that it takes over. To look for them takes
// longer the more streams there are, so it is done where there may be any.
func (a *assembly) inherit(stream change.Stream, spread map[string]bool) error {
	if stream.Namespace == "" && !spread[stream.Resource.String()] {
		return nil
	}
	from, err := a.store.Inherit(stream)
	for _, name := range from {
		a.logger.Info("stream continues where an earlier one stopped: the configured namespaces have changed", "resource", stream.String(), "from", name)
	}
	return err
}

// hasSink says whether a sink of the name is configured.
func (a *assembly) hasSink(name string) bool {
	return slices.ContainsFunc(a.cfg.Sinks, func(s config.Sink) bool { return s.Name == name })
}

// sourceObserver tells the follower of resources that are not where they were.
func sourceObserver(f *selection.Follower) source.Observer {
	t := f.Telemetry
	failed := func(stream change.Stream, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			t.StreamExpired(stream, err)
			return
		}
		if apierrors.IsUnauthorized(err) {
			t.StreamRefused(stream, err)
			return
		}
		if apierrors.IsNotFound(err) {
			t.StreamUnserved(stream, err)
			f.Nudge()
			return
		}
		t.StreamFailed(stream, err)
	}
	return source.Observer{
		Watching: t.Watching, Failed: failed, Received: t.Received, Ignored: t.Ignored,
		Reconciling: t.Reconciling, Listed: t.Listed, Abandoned: t.Abandoned, Reconciled: t.Reconciled, Corrected: t.Corrected, Unreadable: t.Unreadable,
	}
}

func pipelineObserver(t *telemetry.Telemetry, nudge func()) pipeline.Observer {
	return pipeline.Observer{
		Observer: delivery.Observer{
			Queued: t.Queued,
			Opened: t.Opened, Written: t.Written, Failed: t.SinkFailed, Stopped: t.Stopped, Rejected: t.Rejected, Coalesced: t.Coalesced,
			NotKept: t.NotKept, Dropped: t.Dropped, Trimmed: t.Trimmed, Replayed: t.Replayed,
		},
		Left: func(stream change.Stream) {
			t.Left(stream)
			nudge() // it may be back
		},
		Absent: t.Absent, Missed: t.Missed, Committed: t.Committed, CommitFailed: t.CommitFailed,
	}
}
