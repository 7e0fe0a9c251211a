package destination

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/script"
)

var (
	tableLives = flag.Int("tables.lives", 40, "configurations, one after the other")
	tableSeed  = flag.Uint64("tables.seed", 13, "of them")
	tables     kafkatest.Shared
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(tables.Main(m))
}

const tablesUID = "0b6f3c1e-8a4d-4c6e-9a55-7a1f6c9be1f4"

// world is a cluster whose objects change, and one exporter of it, with another configuration in each life.
type world struct {
	*testing.T
	random  *rand.Rand
	broker  *kafkatest.Cluster
	cluster *cluster.Cluster
	objects map[string]*change.Record // the newest of each, by resource and key
	version int
	name    string // of the sink, and what its topics begin with
	mark    sink.Mark
	unsaved []*change.Record
	aside   map[string]bool // objects of which the sink has refused a record
	topics  map[string]bool // whether they are compacted
	former  map[string]bool // topics of before the state was lost
	cleanup string
	labels  bool // some topic that data choose is not compacted: an object may be anywhere
	counts  map[string]int
	Nop
	told bool // of a table of which no state knows
}

// Warned is as in Observer.
func (w *world) Warned(_, text string) {
	w.told = w.told || strings.Contains(text, "no state knows what is in it")
}

// TestI4WhatCompactionLeavesIsTheCluster, or check had refused: in each life topics, keys, format and cleanup may be
// others, and objects change, also their labels and versions. Now and then the exporter is killed, and what it did not
// save comes again, or its state is lost, and nobody knows what tables hold: then it says so, or ends all of it. A
// reader knows nothing but the topics.
func TestI4WhatCompactionLeavesIsTheCluster(t *testing.T) {
	w := &world{T: t, random: rand.New(rand.NewPCG(*tableSeed, 7)), broker: tables.Get(t), cluster: &cluster.Cluster{Name: "c", UID: tablesUID},
		objects: map[string]*change.Record{}, counts: map[string]int{}}
	w.cluster.Chosen.Store(&selection.Choice{})
	w.rename()
	var before choices
	for life := range *tableLives {
		now := w.choose(before)
		if w.life(life, now) {
			before = now
		}
	}
	t.Logf("lives by outcome: %v", w.counts)
	for _, outcome := range []string{"went on", "refused", "accepted", "killed", "told"} {
		if w.counts[outcome] == 0 && *tableSeed == 13 {
			t.Errorf("no life %s: the test shows nothing of that", outcome)
		}
	}
}

// choices are what one life is configured with.
type choices struct {
	format, topic, key, cleanup, delivery string
	accept                                bool
}

// choose changes one thing or two, and sometimes nothing.
func (w *world) choose(before choices) choices {
	pick := func(texts ...string) string { return texts[w.random.IntN(len(texts))] }
	now := before
	if before.topic == "" {
		now = choices{"cloudevents", "{resource}", "", "compact", "idempotent", false}
	}
	for range w.random.IntN(4) {
		switch w.random.IntN(5) {
		case 0:
			now.format = pick("cloudevents", "cloudevents-binary", "debezium", "object")
		case 1:
			now.topic = pick("{resource}", "all", "{resource}.{namespace}", "{resource}.{label:team}", "{version}.{resource}", "{kind}")
		case 2:
			now.key = pick("", "{resource}/{namespace}/{name}", "{kind}.{namespace}/{name}", "{namespace}")
		case 3:
			now.cleanup = pick("compact", "compact", "delete", "compact,delete")
		case 4:
			now.delivery = pick("idempotent", "transactional")
		}
	}
	now.accept = w.random.IntN(2) == 0
	return now
}

// rename gives the sink another name and other topics, of which some are there.
func (w *world) rename() {
	w.name, w.mark, w.unsaved = fmt.Sprint("t", *tableSeed, "-", w.random.IntN(1e9)), "", nil
	w.topics, w.former, w.aside, w.labels, w.told = map[string]bool{}, map[string]bool{}, map[string]bool{}, false, false
	w.broker.CreateTopic(w, w.name+".configmaps.red", kafkatest.Topic{Partitions: 2, Config: map[string]string{"cleanup.policy": "compact"}})
	w.topics[w.name+".configmaps.red"] = true
}

// life is one of the exporter, false where it was refused.
func (w *world) life(number int, c choices) bool {
	w.restream()
	if number > 0 && w.random.IntN(6) == 0 || w.told {
		w.rename()
	} else if w.random.IntN(5) == 0 {
		maps.Copy(w.former, w.topics)
		w.mark, w.unsaved, w.topics = "", nil, map[string]bool{}
	}
	text := fmt.Sprintf("cluster: c\nresources: [configmaps, serviceaccounts, nodes]\nsinks: [{name: %s, format: %s, kafka: {brokers: %q, topic: '%s.%s', key: '%s', cleanup: '%s', delivery: %s, partitions: 3, labelTopics: 9}}]\n",
		w.name, c.format, w.broker.Brokers(), w.name, c.topic, c.key, c.cleanup, c.delivery)
	cfg, err := config.Parse("c.yaml", []byte(text), os.LookupEnv)
	if err == nil {
		err = cfg.Validate()
	}
	var built listener.Sink
	if err == nil {
		built, err = Build(&cfg.Sinks[0], w.cluster, Outlet{Told: w, AcceptNewKeys: c.accept})
	}
	defer func() { w.Logf("life %d: %s %+v: %v; in all %v", number, w.name, c, err, w.counts) }()
	if err != nil {
		w.counts["refused"]++
		return false
	}
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	defer cancel()
	defer func() {
		if err := built.Target.Close(context.WithoutCancel(ctx)); err != nil {
			w.Error(err)
		}
	}()
	note, checked := built.Target.(interface {
		CheckMark(context.Context, sink.Mark) (string, error)
	}).CheckMark(ctx, w.mark)
	found := map[string]bool{}
	err = built.Target.Open(ctx, sink.Opening{Mark: w.mark, After: func() func(string) {
		clear(found)
		return func(id string) { found[id] = true }
	}})
	var lost *sink.LostError
	switch {
	case errors.As(err, new(*sink.PermanentError)):
		w.counts["refused"]++
		if checked == nil && strings.Contains(err.Error(), "--accept-new-keys") {
			w.Errorf("life %d, %+v: check did not say that %v", number, c, err)
		}
		return false
	case errors.As(err, &lost) && w.random.IntN(2) == 0:
		w.counts["killed"]++ // before anything of that is saved
		return false
	case errors.As(err, &lost):
		w.counts["accepted"]++
	case err != nil:
		w.Fatalf("life %d, %+v: %v", number, c, err)
	default:
		w.counts["went on"]++
	}
	if w.told && note == "" {
		w.Errorf("life %d, %+v: check did not say that no state knows the tables", number, c)
	}
	w.know(cfg, c)
	var records []*change.Record
	if w.mark == "" || lost != nil {
		records, w.unsaved = w.present(), nil
	} else {
		for _, rec := range w.unsaved {
			if id := rec.ID(tablesUID); !found[id.String()] {
				records = append(records, rec)
			}
		}
	}
	saved := w.write(ctx, &built, nil)
	w.mark = saved
	w.write(ctx, &built, records)
	w.unsaved = slices.Clone(records)
	for range 3 {
		changed := w.change(w.random.IntN(8))
		mark := w.write(ctx, &built, changed)
		w.unsaved = append(w.unsaved, changed...)
		if w.random.IntN(2) == 0 && lost == nil { // else it is killed before this is saved
			w.mark, w.unsaved = mark, nil
		}
	}
	if lost != nil { // the snapshot is over
		w.mark, w.unsaved = w.write(ctx, &built, nil), nil
	}
	if w.told {
		w.counts["told"]++
		return false
	}
	w.judge(number, c)
	return true
}

// restream gives the resources versions of their own.
func (w *world) restream() {
	choice := &selection.Choice{}
	for _, r := range []change.Resource{
		{Name: "configmaps", Kind: "ConfigMap"}, {Name: "serviceaccounts", Kind: "ServiceAccount"}, {Name: "nodes", Kind: "Node", ClusterScoped: true},
	} {
		r.Version = fmt.Sprint("v", 1+w.random.IntN(2))
		choice.Streams = append(choice.Streams, selection.Selected{Stream: change.Stream{Resource: r}, Names: []string{r.Name}})
	}
	w.cluster.Chosen.Store(choice)
}

// know notes which topics are compacted.
func (w *world) know(cfg *config.Config, c choices) {
	routes, err := kafkaRoutes(&cfg.Sinks[0], w.cluster)
	if err != nil {
		w.Fatal(err)
	}
	named, found := topicsOf(w.cluster, &cfg.Sinks[0], routes)
	for _, topic := range append(named, found...) {
		w.note(topic, c.cleanup)
	}
	w.labels, w.cleanup = w.labels || c.cleanup == "delete", c.cleanup
}

func (w *world) note(topic, cleanup string) {
	if _, known := w.topics[topic]; !known {
		w.topics[topic] = strings.Contains(cleanup, "compact")
		if compacted, had := w.former[topic]; had {
			w.topics[topic] = compacted
		}
	}
}

// change changes n objects.
func (w *world) change(n int) (records []*change.Record) {
	streams := w.cluster.Streams()
	for range n {
		w.version++
		stream := &streams[w.random.IntN(len(streams))].Stream
		key := change.Key{Namespace: fmt.Sprint("ns", w.random.IntN(2)), Name: fmt.Sprint("web", w.random.IntN(4))}
		if stream.Resource.ClusterScoped {
			key.Namespace = ""
		}
		at := stream.Resource.Name + " " + key.String()
		rec := &change.Record{Stream: stream, Op: change.Updated, Key: key, UID: fmt.Sprint("u", w.version), ResourceVersion: fmt.Sprint(w.version), Received: time.Unix(1.7e9, 0).Add(time.Duration(w.version) * time.Second)}
		before := w.objects[at]
		switch {
		case before == nil || before.Op == change.Deleted:
			rec.Op = change.Added
		case w.random.IntN(3) == 0:
			rec.Op, rec.UID = change.Deleted, before.UID
		default:
			rec.UID = before.UID
		}
		team := []string{"red", "blue"}[w.random.IntN(2)]
		rec.Object = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"name":%q,"uid":%q,"resourceVersion":%q,"labels":{"team":%q}}}`,
			stream.Resource.Kind, stream.Resource.Version, key.Name, rec.UID, rec.ResourceVersion, team)
		w.objects[at] = rec
		records = append(records, rec)
	}
	return records
}

// present are all objects, as a snapshot tells them.
func (w *world) present() (records []*change.Record) {
	for _, at := range slices.Sorted(maps.Keys(w.objects)) {
		if rec := *w.objects[at]; rec.Op != change.Deleted {
			rec.Op = change.Replaced
			records = append(records, &rec)
		}
	}
	return records
}

// write brings the records to the sink, but for those that it refuses. Where it ends keys, everything is told again.
func (w *world) write(ctx context.Context, to *listener.Sink, records []*change.Record) sink.Mark {
	var batch []sink.Message
	to.Encoder.Reset()
	for _, rec := range records {
		var err error
		if batch, err = to.Encoder.Encode(ctx, batch, rec); err != nil {
			w.Fatal(err)
		}
	}
	for _, m := range batch {
		w.note(m.Destination, w.cleanup)
	}
	for {
		mark := sink.Mark("")
		add, err := to.Target.(sink.Announcer).Announce(ctx, batch)
		if err == nil && add != nil {
			w.mark, err = add(w.mark)
		}
		if err == nil {
			mark, err = to.Target.Write(ctx, batch)
		}
		var rejected *sink.RejectedError
		if err != nil && !errors.As(err, &rejected) {
			var lost *sink.LostError
			if err := to.Target.Open(ctx, sink.Opening{Mark: w.mark, After: func() func(string) { return func(string) {} }}); !errors.As(err, &lost) {
				w.Fatal(err)
			}
			w.counts["ended"]++
			return w.write(ctx, to, w.present())
		}
		if rejected == nil {
			return mark
		}
		id := batch[rejected.Index].ID
		parsed, err := change.ParseAnyID(id)
		if err != nil {
			w.Fatal(err)
		}
		w.aside[parsed.Resource+" "+parsed.Key.String()] = true
		batch = slices.DeleteFunc(batch[rejected.Index:], func(m sink.Message) bool { return m.ID == id })
	}
}

// judge folds the tables: what lives in them is what the cluster has now, and if all topics are tables, all of that,
// each object once.
func (w *world) judge(life int, c choices) {
	seen, whole := map[string]string{}, true
	for topic, compacted := range w.topics {
		if whole = whole && compacted; !compacted {
			continue
		}
		w.broker.AwaitTransactions(w, topic)
		alive := map[string]kafkatest.Record{}
		for _, r := range w.broker.ConsumeFast(w, topic, kafkatest.JudgeOptions{ReadCommitted: true}) {
			at := fmt.Sprint(r.Partition, " ", string(r.Key))
			if alive[at] = r; r.Value == nil {
				delete(alive, at)
			}
		}
		for at, r := range alive {
			id, err := change.ParseAnyID(string(r.Headers[0].Value))
			if err != nil {
				w.Fatal(err)
			}
			object := id.Resource + " " + id.Key.String()
			now := w.objects[object]
			if w.aside[object] {
				continue
			}
			if now.Op == change.Deleted || now.ResourceVersion != id.ResourceVersion {
				w.Errorf("seed %d, life %d, %+v: topic %s has %s at %s as of %s, the cluster %s at %s", *tableSeed, life, c, topic, object, at, id.ResourceVersion, now.Op, now.ResourceVersion)
			}
			if other := seen[object]; other != "" {
				w.Errorf("seed %d, life %d, %+v: %s lives in %s, and in topic %s at %s", *tableSeed, life, c, object, other, topic, at)
			}
			seen[object] = "topic " + topic + " at " + at
		}
	}
	for object, now := range w.objects {
		if whole && !w.labels && now.Op != change.Deleted && seen[object] == "" && !w.aside[object] {
			w.Errorf("seed %d, life %d, %+v: no topic has %s", *tableSeed, life, c, object)
		}
	}
	if w.Failed() {
		w.FailNow()
	}
}

var must = script.Must
