package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/selection"
)

// neighbour is one exporter among several on one server: the real sinks as the configuration makes them, the real line
// and state, and a source that plays its cluster.
type neighbour struct {
	t       *testing.T
	name    string // of the exporter
	cluster string
	uid     string // of the cluster; the uids of its objects begin with the first letter
	sinks   string // of the configuration
	once    bool   // who is refused does not try again: a person would have to look at it first
	dir     string
	refused error // what ended its last life, or stopped a sink in it; nil is neither
	lives   int
	ends    []error // of all lives: what refused was

	mu       sync.Mutex
	waiting  map[string]int   // by sink: the records that it does not have
	stopped  map[string]error // by sink
	rejected map[change.ID]error
	moved    chan struct{} // buffered 1: something of these has changed
}

var neighbourStream = change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}

// history is what the cluster of the letter did until the life: five objects more, and one less, in each. All exporters
// of a cluster see the same; objects of several clusters have the same names.
func history(letter string, lives int) (records []*change.Record) {
	version := 0
	add := func(op change.Op, number int) {
		version++
		text := strconv.Itoa(version)
		name := fmt.Sprintf("pod-%d", number)
		records = append(records, &change.Record{
			Stream: &neighbourStream, Op: op, Key: change.Key{Namespace: "shop", Name: name}, UID: letter + "-" + name, ResourceVersion: text,
			Object:   fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":%q,"labels":{"team":"t%d"}}}`, name, number%3),
			Received: time.Now(), Position: change.Position{ResourceVersion: text, Complete: true},
		})
	}
	for life := range lives {
		for i := range 5 {
			add(change.Added, life*5+i)
		}
		add(change.Deleted, life*5)
		add(change.Updated, life*5+1)
	}
	return records
}

// existing are the names of the objects that the records leave, with their uids.
func existing(records []*change.Record) map[string]string {
	objects := map[string]string{}
	for _, rec := range records {
		if objects[rec.Key.Name] = rec.UID; rec.Op == change.Deleted {
			delete(objects, rec.Key.Name)
		}
	}
	return objects
}

// letter is the cluster's.
func (n *neighbour) letter() string { return n.uid[:1] }

// run is the source: what is not saved comes again, and of what a log shows and the cluster does not have, the deletes
// are told.
func (n *neighbour) run(store *checkpoint.Store, done context.CancelFunc) func(context.Context, *pipeline.Inlet) error {
	return func(ctx context.Context, line *pipeline.Inlet) error {
		records := history(n.letter(), n.lives)
		position, _, err := store.Position(neighbourStream.String())
		if err != nil {
			return err
		}
		last := records[len(records)-1].ResourceVersion
		for _, rec := range records {
			if change.CompareVersions(rec.ResourceVersion, position.ResourceVersion) > 0 {
				if err := line.Push(ctx, rec); err != nil {
					return task.IgnoreStop(ctx, err)
				}
			}
		}
		if err := n.tellGone(ctx, line, last); err != nil || !n.settle(ctx) {
			return task.IgnoreStop(ctx, err)
		}
		if n.refusal() == nil {
			err = line.Drain(ctx, neighbourStream)
		}
		done()
		<-ctx.Done()
		return task.IgnoreStop(ctx, err)
	}
}

// tellGone tells that the line's sink-only objects are gone.
func (n *neighbour) tellGone(ctx context.Context, line *pipeline.Inlet, version string) error {
	there := existing(history(n.letter(), n.lives))
	for _, object := range line.SinkOnly(neighbourStream) {
		if there[object.Key.Name] == object.UID {
			continue
		}
		err := line.Push(ctx, &change.Record{
			Stream: &neighbourStream, Op: change.Deleted, Key: object.Key, UID: object.UID, ResourceVersion: object.ResourceVersion,
			FinalStateUnknown: true, Received: time.Now(), Snapshot: &change.Snapshot{ID: version + ".1", Reason: change.Gone, ResourceVersion: version},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settle waits until each sink has everything, or is stopped.
func (n *neighbour) settle(ctx context.Context) bool {
	for {
		n.mu.Lock()
		pending := false
		for name, waiting := range n.waiting {
			pending = pending || waiting > 0 && n.stopped[name] == nil
		}
		n.mu.Unlock()
		if !pending {
			return true
		}
		select {
		case <-n.moved:
		case <-ctx.Done():
			return false
		}
	}
}

// refusal is what stopped sinks in this life, nil for nothing.
func (n *neighbour) refusal() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, cause := range n.stopped {
		err = errors.Join(err, fmt.Errorf("sink %s: %w", name, cause))
	}
	return err
}

// note changes what is known of the sinks.
func (n *neighbour) note(change func()) {
	n.mu.Lock()
	change()
	n.mu.Unlock()
	select {
	case n.moved <- struct{}{}:
	default:
	}
}

func (n *neighbour) observer() pipeline.Observer {
	o := pipeline.NopObserver()
	o.Queued = func(sink string, backlog fifo.Levels) { n.note(func() { n.waiting[sink] = backlog.Records }) }
	o.Stopped = func(sink string, err error) { n.note(func() { n.stopped[sink] = err }) }
	o.Rejected = func(_ string, rec *change.Record, _ string, err error) {
		n.note(func() { n.rejected[rec.ID(n.uid)] = err })
	}
	return o
}

// live runs the exporter until each sink has been told everything, or is refused.
func (n *neighbour) live() {
	if n.lives++; n.once && n.refused != nil {
		return
	}
	err := n.liveOnce()
	for listener.IsLate(err) { // Run begins anew, too
		err = n.liveOnce()
	}
	if n.refused = n.refusal(); n.refused == nil {
		n.refused = err
	}
	n.ends = append(n.ends, n.refused)
}

func (n *neighbour) liveOnce() error {
	n.waiting, n.stopped, n.rejected, n.moved = map[string]int{}, map[string]error{}, map[change.ID]error{}, make(chan struct{}, 1)
	ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Minute)
	defer cancel()
	c := &cluster.Cluster{Name: n.cluster, UID: n.uid}
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{{Stream: neighbourStream, Names: []string{"pods"}}}})
	return runLine(ctx, stage{cluster: c, dir: n.dir, sinks: n.sinks}, func(store *checkpoint.Store) pipeline.Config {
		return pipeline.Config{
			StopTimeout: 5 * time.Minute, Observer: n.observer(),
			Sources: []pipeline.Source{{Stream: neighbourStream, Run: n.run(store, cancel), Request: func(...change.Owed) {}}},
		}
	})
}

// stage is where a line runs whose sources are played.
type stage struct {
	cluster *cluster.Cluster
	dir     string // of the state
	sinks   string // of the configuration
}

// runLine runs the real line with the real sinks and state until ctx ends.
func runLine(ctx context.Context, on stage, with func(*checkpoint.Store) pipeline.Config) error {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg, err := config.Parse("config.yaml", fmt.Appendf(nil, "resources: [pods]\nsinks:\n%s", on.sinks), os.LookupEnv)
	if err != nil {
		return err
	}
	store, err := checkpoint.Open(ctx, on.dir, checkpoint.Options{Logger: logger})
	if err != nil {
		return err
	}
	defer store.Close()
	c := on.cluster
	if err := errors.Join(c.Claim(store, on.dir, logger), c.Recall(store), c.AdoptIdentity(store)); err != nil {
		return err
	}
	p := with(store)
	p.ClusterUID, p.Store = c.UID, store
	if p.Sinks, err = destination.BuildAll(cfg, c, destination.Outlet{Stdout: io.Discard, Told: destination.Nop{}}); err != nil {
		return err
	}
	return pipeline.Run(ctx, p)
}

// file is beside the state.
func (n *neighbour) file() string { return filepath.Join(n.t.ArtifactDir(), n.name+".ndjson") }

// inFile is what the file beside Kafka leaves in existence.
func (n *neighbour) inFile() map[string]string {
	n.t.Helper()
	text, err := os.ReadFile(n.file())
	if err != nil {
		n.t.Fatal(err)
	}
	objects := map[string]string{}
	for line := range strings.Lines(string(text)) {
		var value struct{ ID string }
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			n.t.Fatal(err)
		}
		id, err := change.ParseID(value.ID)
		if err != nil {
			n.t.Fatal(err)
		}
		switch {
		case id.Op == change.Deleted:
			delete(objects, id.Key.Name)
		case id.Op.OfObject():
			objects[id.Key.Name] = id.UID
		}
	}
	return objects
}
