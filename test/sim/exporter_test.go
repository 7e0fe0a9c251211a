package sim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// exporter does what `exporter run` does.
func (l *life) exporter() (err error) {
	log := l.stateLog()
	if err := log.takeOver(l.ctx); err != nil {
		if sink.IsFenced(err) {
			l.shutOut()
		}
		return ignoreStop(l.ctx, err)
	}
	store, err := checkpoint.Open(l.ctx, "state", l.options(log.journal()))
	if err != nil {
		return ignoreStop(l.ctx, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	stop, err := log.run(store)
	if err != nil {
		return err
	}
	defer stop()
	uid, err := l.claim(store)
	if err != nil {
		return err
	}
	rules, err := rulesOf(l.spec)
	if err != nil {
		return err
	}
	store.SetForms(func(*change.Stream) string { return rules.today.Form })
	l.world.judge.opened(l, store)
	images := listener.NewImages(store)
	sources, err := l.sources(store, uid, rules, images)
	if err != nil {
		return err
	}
	err = pipeline.Run(l.ctx, pipeline.Config{
		ClusterUID: uid, Sources: sources, Sinks: l.sinks(uid), Store: store, Images: images,
		Reshape: func(rec *change.Record) error { return rules.today.Reshape(rec, rec.Form) },
		Desk:    l.desk, StopTimeout: 20 * time.Second, Observer: l.world.judge.pipelineObserver(l),
		Overtaken: l.lost, Prove: log.proof(),
	})
	if sink.IsFenced(err) {
		l.shutOut()
	}
	return err
}

// options are what the state is opened with.
func (l *life) options(journal checkpoint.Journal) checkpoint.Options {
	hook := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !l.isDead() {
			_ = l.step("disk") // the dead write to a disk that nobody sees again
		}
		return nil
	})
	o := checkpoint.OnFS(errorfs.Wrap(l.disk(), hook))
	o.Logger, o.Journal = slog.New(slog.NewTextHandler(io.Discard, nil)), journal
	return o
}

// ignoreStop is nil where the life was told to stop before it began.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// claim ties the state to the cluster.
func (l *life) claim(store *checkpoint.Store) (string, error) {
	l.world.mu.Lock()
	now := checkpoint.Cluster{Name: "sim", UID: l.world.server.etcd.uid}
	l.world.mu.Unlock()
	if _, err := store.Met(now.UID); err != nil {
		return "", err
	}
	saved, found, err := store.Cluster()
	if err != nil || found && saved == now {
		return now.UID, err
	}
	return now.UID, store.SetCluster(now)
}

func (l *life) sources(store *checkpoint.Store, uid string, rules rules, images *listener.Images) ([]pipeline.Source, error) {
	streams := l.spec.streams()
	client, err := source.NewClient(&rest.Config{Host: "http://sim", Transport: &transport{l.world.server, l}}, len(streams))
	if err != nil {
		return nil, err
	}
	if err := store.KnowStreams(streams); err != nil {
		return nil, err
	}
	var all []pipeline.Source
	gate := make(source.Gate, 2)
	for _, stream := range streams {
		config := source.Config{
			Client: client, Stream: stream, Histories: store, ClusterUID: uid, Gate: gate, Shape: rules.shape,
			Observer: l.world.judge.sourceObserver(l),
		}
		if l.world.script.Half {
			if err := store.KeepObjects(stream.String(), []byte(rules.today.Form)); err != nil {
				return nil, err
			}
			config.Kept, config.Ignore, config.BeforeHidden = images.Images, isIgnored, true
		}
		informer := source.NewSharedInformer(config)
		l.serve(stream, informer)
		all = append(all, pipeline.Source{
			Stream: stream, Run: informer.Run, Join: informer.Join, Ask: informer.Ask, Withdraw: informer.Withdraw,
		})
	}
	return all, nil
}

// serve makes the stream be read in the version that the server prefers, now and later.
func (l *life) serve(stream change.Stream, informer *source.SharedInformer) {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	informer.Serve(l.world.server.version[stream.Resource.Name])
	l.sessions = append(l.sessions, served{stream.Resource.Name, informer})
}

func (l *life) sinks(uid string) []listener.Sink {
	var all []listener.Sink
	for _, spec := range l.world.script.Sinks {
		if !l.has(spec.Name) {
			continue
		}
		all = append(all, l.behindGate(listener.Sink{
			Name: spec.Name, Target: newLogSink(l.world.logs[spec.Name], l),
			Encoder: encode.NewEncoder(encode.Options{Cluster: "sim", ClusterUID: uid}),
			Wants:   func(s *change.Stream) bool { return spec.takes(s.Resource.Name) },
			Resync:  time.Duration(spec.Resync) * time.Second, Resolved: l.resolved(spec), Digest: !l.world.script.Half,
			Queue: fifo.Limit{Bytes: 1 << 20, Records: spec.Queue}, Coalesce: spec.coalesces(), Spool: spec.spool(),
		}))
	}
	return all
}

// resolved is how often the sink is told up to where it is complete: in half of the worlds, and not where its queue
// leaves states out.
func (l *life) resolved(k sinkSpec) time.Duration {
	if k.coalesces() {
		return 0
	}
	return time.Duration(l.world.script.Seed%2) * time.Second
}

// spool is the limit of the sink's spool in bytes, 0 where it has none.
func (k sinkSpec) spool() int64 {
	_, limit, given := strings.Cut(k.Full, "/")
	if bytes, err := strconv.ParseInt(limit, 10, 64); given && err == nil {
		return bytes
	}
	if k.Full == "block" {
		return 0
	}
	return 1 << 20
}

// has says whether the sink is configured in this life.
func (l *life) has(sinkName string) bool { return strings.Contains(l.spec.Sinks, sinkName) }
