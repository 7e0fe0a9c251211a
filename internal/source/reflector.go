package source

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
)

// NewStream returns a stream that is not running.
func NewStream(config Config) *Stream { return streamOf(config, config.ClusterUID) }

// streamOf is NewStream where the cluster of the uid is there now.
func streamOf(config Config, uid string) *Stream {
	if config.generation == nil {
		config.generation = new(atomic.Int64)
	}
	s := &Stream{
		output:  output{Config: config, stream: config.Stream, cursor: newCursor(config.Saved), epoch: uid, turns: newTurns()},
		silence: silence{least: minSilence},
		retries: reflectorBackoff(),
	}
	s.origin.collection = collection{config.Client, config.Stream, config.Selection, config.Keep}
	s.origin.uid, s.origin.versions.stream = uid, &s.stream
	s.schedule = newSchedule(s.readSnapshots)
	sameCluster := change.ClusterOf(config.Saved.Epoch) == uid
	if sameCluster {
		s.epoch = config.Saved.Epoch
	}
	switch {
	case config.Saved.ResourceVersion == "" && !s.isEmpty(): // an initial snapshot whose version nobody saved
		s.schedule.add(change.Owed{Reason: change.Stale})
	case config.Saved.ResourceVersion == "":
		s.schedule.add(change.Owed{Reason: change.Initial})
	case !sameCluster:
		s.schedule.add(change.Owed{Reason: change.Epoch})
	case config.Saved.GoesOn(config.Selection.String()):
		s.goesOn = true
		s.schedule.add(change.Owed{Reason: reasonOf(config.Saved)})
	case config.Saved.Selector != config.Selection.String():
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
	return s
}

// reasonOf is the reason of the comparison that goes on at the position.
func reasonOf(position change.Position) change.Reason {
	if position.Initial() {
		return change.Initial
	}
	return change.Stale
}

// Request asks for full snapshots, each for one sink. It returns at once; a reader gives them beside the watch.
func (s *Stream) Request(owed ...change.Owed) { s.schedule.add(owed...) }

// Run reads until ctx ends. It starts the Reflector's goroutines and returns when they are gone.
func (s *Stream) Run(ctx context.Context, line Line) error {
	s.line = line
	// The Reflector logs each failure again and again; the observer hears of them instead.
	ctx = klog.NewContext(ctx, logr.Discard())
	discard := logr.Discard()
	w := &watcher{Stream: s, permit: permit{gate: s.Gate}}
	through := listerWatcher{&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watchAside}}
	reflector := cache.NewReflectorWithOptions(through, nil, nopStore{}, cache.ReflectorOptions{
		Logger:          &discard,
		Name:            s.stream.String(),
		TypeDescription: s.stream.String(),
		Backoff:         s.retries,
	})
	reflector.RunWithContext(ctx)
	w.lists.Wait()
	s.schedule.stopReader()
	w.permit.giveBack()
	return nil
}

// reflectorBackoff starts sooner than the Reflector's own, which waits from 0.8 s up to 60 s: from 0.1 s up to 30 s.
// The jitter makes each wait up to twice as long.
func reflectorBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// nopStore is the ReflectorStore of a stream, whose records the decoder and reconcile put in line.
type nopStore struct{}

func (nopStore) Add(any) error { return nil }

func (nopStore) Update(any) error { return nil }

func (nopStore) Delete(any) error { return nil }

// Replace is the Reflector's hand-over of a list. Ours has been put in line already, and is empty.
func (nopStore) Replace([]any, string) error { return nil }

// Resync is not used: the Reflector's own resync would be the same for all sinks.
func (nopStore) Resync() error { return nil }
