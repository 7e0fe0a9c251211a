package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4WhateverIsConfiguredBetweenStartsTheSinksFoldToTheCluster: 50 changes a second go on while the exporter is
// killed or stopped, configured anew at random, and started again: namespaces, selectors, rules, sinks that leave and
// return, what they take, their queues, partitions of topics. E2E_STARTS is how often, E2E_SEEDS how many seeds are
// tried from E2E_SEED on.
func TestI4WhateverIsConfiguredBetweenStartsTheSinksFoldToTheCluster(t *testing.T) {
	first := seed(t)
	for i := range uint64(number(t, "E2E_SEEDS", 1)) {
		t.Run(fmt.Sprintf("seed %d", first+i), func(t *testing.T) { reconfigure(t, first+i) })
	}
}

// changesASecond is about what the writer makes.
const changesASecond = 50

func reconfigure(t *testing.T, seed uint64) {
	c := newConfigured(t, seed)
	times := number(t, "E2E_STARTS", 6)
	now := whole(c.plan.sinks)
	c.changes = c.rig.writer.trickle(t, time.Second/changesASecond, seed)
	for range times {
		c.begin(now)
		c.live()
		c.end(c.plan.random.IntN(2) == 0)
		c.await(c.plan.random.Int64N(changesASecond))
		now = c.plan.change(now)
		c.widen()
	}
	c.rig.writer.stop(t)
	c.conclude(now)
	c.conclude(whole(c.plan.sinks))
	t.Logf("seed %d: %d starts, %d changes", seed, times+2, c.changes.Load())
}

// configured is a world whose exporter is configured anew again and again.
type configured struct {
	t            *testing.T
	seed         uint64
	rig          *rig
	plan         *plan
	pool         *kafka.Cluster // nil where there is none
	partitions   map[string]int // of the pool's topics that were widened
	destinations map[string]string
	followers    map[string]*follower
	changes      *atomic.Int64
	lives        []life
	logged       int // so much of its log is of earlier lives
	made         int // landmarks
}

// life is one start of the exporter.
type life struct {
	*settings
	number int
	began  time.Time
	had    map[string]int // how many records each sink had
}

// newConfigured starts everything but the exporter.
func newConfigured(t *testing.T, seed uint64) *configured {
	t.Helper()
	r := newRigOf(t, world{kinds: reconfiguredKinds()})
	for _, namespace := range places() {
		r.make(core("namespaces"), coreObject("Namespace", namespace, nil))
	}
	r.writer = newWriter(r.world.kinds, r.client, r.ledger, seed)
	r.writer.populate(t)
	c := &configured{
		t: t, seed: seed, rig: r, plan: newPlan(seed, sinkFile, sinkBus), partitions: map[string]int{},
		destinations: map[string]string{
			sinkFile: fmt.Sprintf("file: {path: %q}", r.path()),
			sinkBus:  fmt.Sprintf("nats: {url: %q, stream: %s}", "nats://"+r.broker.address(), streamName),
		},
		followers: map[string]*follower{sinkFile: r.file, sinkBus: r.stream},
	}
	c.addPool()
	return c
}

// addPool adds a sink in Kafka, where that is there.
func (c *configured) addPool() {
	c.t.Helper()
	if kafka.Available(c.t.Context()) != nil && !kafka.Required() {
		return
	}
	c.pool = kafka.Start(c.t, kafka.Options{})
	c.plan.sinks = append(c.plan.sinks, sinkPool)
	c.destinations[sinkPool] = fmt.Sprintf("kafka: {brokers: [%s], topic: %q, partitions: %d}",
		strings.Join(c.pool.Brokers(), ", "), poolPrefix+"{resource}", poolPartitions)
	c.followers[sinkPool] = followTopics(c.pool, kafkaSink{name: sinkPool, prefix: poolPrefix}, c.rig.names())
}

// reconfiguredKinds are config maps with labels in each namespace, and widgets.
func reconfiguredKinds() (all []*kind) {
	for _, namespace := range places() {
		all = append(all, &kind{resource: core("configmaps"), namespace: namespace, names: numbered("map", 8), manifest: configMap, apps: []string{"web", "db", "job"}})
	}
	return append(all, &kind{resource: widgets(), namespace: "shop", names: numbered("widget", 8), manifest: widget})
}

// trickle makes one change at a time until stop, and counts them.
func (w *writer) trickle(t *testing.T, pace time.Duration, seed uint64) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	made, random := new(atomic.Int64), rand.New(rand.NewPCG(seed, 78))
	w.done.Go(func() {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := w.workers[random.IntN(len(w.workers))].step(context.WithoutCancel(ctx)); err != nil {
				w.note(err)
				return
			}
			made.Add(1)
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(func() { cancel(); w.done.Wait() })
	return made
}

// await returns when the writer has made so many changes more.
func (c *configured) await(more int64) {
	c.t.Helper()
	until := c.changes.Load() + more
	eventually(c.t, patience, "the writer has made some changes", func() bool {
		c.rig.writer.check(c.t)
		return c.changes.Load() >= until
	})
}

// begin starts the exporter with the settings.
func (c *configured) begin(s *settings) {
	c.t.Helper()
	c.rig.configured(s.text(c.destinations))
	had := map[string]int{}
	for name, sink := range c.followers {
		had[name] = len(sink.all(c.t))
	}
	c.lives = append(c.lives, life{settings: s, number: len(c.lives) + 1, began: time.Now(), had: had})
	c.t.Logf("seed %d, start %d: %s; the sinks have %v", c.seed, len(c.lives), s, had)
	c.logged = len(c.rig.exporter.log(c.t))
	c.rig.exporter.start(c.t)
}

// live returns at once, when the exporter has begun, or when the sinks have everything, and some changes later.
func (c *configured) live() {
	c.t.Helper()
	switch c.plan.random.IntN(4) {
	case 0:
	case 1:
		c.catchUp()
	default:
		c.awaitBegin()
	}
	c.await(c.plan.random.Int64N(2 * changesASecond))
}

// awaitBegin returns when the exporter says that it begins.
func (c *configured) awaitBegin() {
	c.t.Helper()
	eventually(c.t, deliveryLimit, "the exporter starts", func() bool {
		return strings.Contains(c.rig.exporter.log(c.t)[c.logged:], "exporter starts")
	})
}

// end kills the exporter, or stops it as soon as it has begun.
func (c *configured) end(killed bool) {
	c.t.Helper()
	if !c.rig.exporter.runs() {
		c.t.Fatalf("the exporter has ended:\n%s", c.rig.exporter.lastLines(c.t))
	}
	c.t.Logf("seed %d, start %d ends with a kill: %v", c.seed, len(c.lives), killed)
	if killed {
		c.rig.exporter.process.Kill()
		return
	}
	c.awaitBegin()
	c.rig.exporter.stop(c.t)
}

// widen adds a partition to a topic now and then.
func (c *configured) widen() {
	c.t.Helper()
	if c.pool == nil || c.plan.random.IntN(3) > 0 {
		return
	}
	topics, err := c.pool.Topics(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	topics = slices.DeleteFunc(topics, func(name string) bool { return !strings.HasPrefix(name, poolPrefix) })
	if len(topics) == 0 {
		return
	}
	topic := topics[c.plan.random.IntN(len(topics))]
	c.partitions[topic]++
	c.pool.AddPartitions(c.t, topic, poolPartitions+c.partitions[topic])
}

// catchUp returns when each sink has what is made now in every stream that it is given.
func (c *configured) catchUp() {
	c.t.Helper()
	now := c.lives[len(c.lives)-1]
	for _, k := range c.landmarks(now.settings) {
		c.made++
		marker := newWorker(k, c.rig.client, c.rig.ledger, c.plan.random)
		s := &slot{name: fmt.Sprintf("zz-landmark-%d", c.made)}
		if err := marker.create(c.t.Context(), s); err != nil {
			c.t.Fatal(err)
		}
		for name, sink := range c.followers {
			if now.gives(name, k.name(), k.namespace) {
				sink.awaitObjects(c.t, c.rig.exporter, string(s.object.GetUID()))
			}
		}
	}
}

// landmarks are kinds of objects that are selected, one for each stream.
func (c *configured) landmarks(s *settings) []*kind {
	all := []*kind{{resource: widgets(), namespace: "shop", manifest: widget}}
	for _, namespace := range places() {
		if s.namespaces == nil || slices.Contains(s.namespaces, namespace) {
			all = append(all, &kind{resource: core("configmaps"), namespace: namespace, manifest: configMap, apps: []string{s.label()}})
		}
	}
	return all
}

// conclude starts the exporter with the settings while nobody writes, and judges what the sinks are told in the end.
func (c *configured) conclude(s *settings) {
	c.t.Helper()
	c.begin(s)
	c.catchUp()
	c.rig.idle()
	c.rig.exporter.stop(c.t)
	cluster := c.selected(s)
	for name, sink := range c.followers {
		j := newRestartJudge(name, c.rig.ledger.histories, c.lives)
		j.hear(sink.all(c.t))
		if s.sink(name) != nil {
			j.compare(s, cluster)
		}
		j.verdict(c.t)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}
