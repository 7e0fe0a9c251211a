package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestKafka has three brokers for one scenario after the other: they are heavy, and each leaves them as it found them.
func TestKafka(t *testing.T) {
	playOnBrokers(t, []brokerScenario{
		{"I3I5 brokers and exporter are killed, paused, moved", kafkaUnderFaults},
		{"I1 in-sync replicas are missing", kafkaWaitsForReplicas},
		{"I4 I5 a lost state directory is no gap", kafkaStateLost},
		{"I3 nothing of a throttled exporter comes late", kafkaThrottles},
		{"I4 acknowledged data are lost", kafkaLosesData},
		{"I2 a compacted topic is the cluster", kafkaCompacts},
		{"I3 all kinds of sinks at once", allKindsOfSinks},
		{"I4 what a topic does not take is kept and sent again", kafkaRefusesLargeObjects},
		{"I4 topics come with their definitions", kafkaFollowsDefinitions},
	})
}

// TestKafkaAndSeveralExporters, and what they are asked for there, on brokers of their own: both tests take minutes.
func TestKafkaAndSeveralExporters(t *testing.T) {
	playOnBrokers(t, []brokerScenario{
		{"I10 taken over by a second exporter", func(t *testing.T, c *kafka.Cluster) { kafkaTakenOver(t, c, "transactional") }},
		{"I10 taken over by a second exporter, idempotent", func(t *testing.T, c *kafka.Cluster) { kafkaTakenOver(t, c, "idempotent") }},
		{"I10 I11 two exporters are one", kafkaTwoExportersAreOne},
		{"I3 I4 I10 tasks go between exporters", kafkaTasksGoBetweenExporters},
		{"I3 I4 I10 clusters and tasks go between exporters", kafkaClustersAndTasksGoBetweenExporters},
		{"I5 signals are followed once, and told of to the end", kafkaHearsSignals},
		{"I5 I11 who takes over follows signals, too", kafkaLeadersHearSignals},
	})
}

type brokerScenario struct {
	name string
	run  func(*testing.T, *kafka.Cluster)
}

// playOnBrokers plays the scenarios one after the other on three brokers.
func playOnBrokers(t *testing.T, scenarios []brokerScenario) {
	if testing.Short() {
		t.Skip("starts three Kafka brokers")
	}
	kafka.RequireReal(t)
	t.Parallel()
	c := kafka.Start(t, kafka.Options{Nodes: 3, Listeners: []kafka.Listener{kafka.Behind1, kafka.Behind2}})
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
			defer cancel()
			if err := c.StartNodes(ctx); err != nil { // those that a scenario which failed has left dead
				t.Fatal(err)
			}
			scenario.run(t, c)
		})
	}
}

// scenarioLimit bounds what is done to brokers in one scenario.
const scenarioLimit = 10 * time.Minute

// kafkaUnderFaults writes in both deliveries at once, so that one slows the other down and they share no excuse.
func kafkaUnderFaults(t *testing.T, c *kafka.Cluster) {
	plain := kafkaSink{name: "idempotent", prefix: "fi.dev.", delivery: "idempotent", more: threeReplicas}
	whole := kafkaSink{name: "transactional", prefix: "ft.dev.", delivery: "transactional", more: threeReplicas}
	r := newKafkaRig(t, c, plain, whole)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...) // the topics are there
	r.exporter.process.Kill()
	harm := startHarm(t, c, append(plain.topics(r.names()), whole.topics(r.names())...))
	r.writer.start(t)
	kills := r.killUntil(changes(t))
	r.settle()
	t.Log(harm.stop(t))
	r.stopIdle()
	r.awaitTransactions(c, whole)
	r.judge(false)
	t.Logf("the exporter was killed %d times", kills)
}

// changes is how many the writer makes while brokers and the exporter suffer.
func changes(t *testing.T) int {
	t.Helper()
	return number(t, "E2E_CHANGES", 2000)
}

// killUntil kills the exporter at random instants until the writer has made so many changes. Every third life lasts
// until the sinks have what was there at its begin, so that they do not fall behind the API server's history. It leaves
// the exporter running.
func (r *rig) killUntil(changes int) int {
	r.t.Helper()
	random := rand.New(rand.NewPCG(seed(r.t), 6000))
	for lives := 0; ; lives++ {
		r.writer.check(r.t)
		newest := r.ledger.newest()
		r.exporter.start(r.t)
		if versions, deletes := r.ledger.count(); versions+deletes >= changes {
			return lives
		}
		if lives%3 == 2 {
			for _, sink := range r.sinks() {
				sink.await(r.t, r.exporter, fmt.Sprintf("a version of %s from %d on", newest.resource, newest.last().number),
					func(e *event) bool { return e.kind() == newest.resource && e.version() >= newest.last().number })
			}
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(4 * time.Second)))):
		case <-r.exporter.process.Exited:
			r.t.Fatalf("the exporter ended by itself:\n%s", r.exporter.lastLines(r.t))
		}
		r.exporter.process.Kill()
	}
}

// harm is what happens to the brokers, one at a time.
type harm struct {
	cluster *kafka.Cluster
	topics  []string
	random  *rand.Rand
	cancel  context.CancelFunc
	over    chan error
	counts  map[string]int
}

// startHarm kills, pauses and dethrones leaders of the topics until stop.
func startHarm(t *testing.T, c *kafka.Cluster, topics []string) *harm {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &harm{cluster: c, topics: topics, random: rand.New(rand.NewPCG(seed(t), 7000)), cancel: cancel, over: make(chan error, 1), counts: map[string]int{}}
	t.Cleanup(cancel)
	go func() { h.over <- h.run(ctx) }()
	return h
}

// stop returns when all brokers are well again.
func (h *harm) stop(t *testing.T) string {
	t.Helper()
	h.cancel()
	if err := <-h.over; err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("leaders were %v", h.counts)
}

func (h *harm) run(ctx context.Context) error {
	faults := []struct {
		name string
		do   func(ctx context.Context, id int) error
	}{{"killed", h.kill}, {"paused", h.pause}, {"moved", h.move}}
	calm := context.WithoutCancel(ctx) // what is begun is mended
	for i := 0; ctx.Err() == nil; i++ {
		fault := faults[i%len(faults)]
		bounded, cancel := context.WithTimeout(calm, 5*time.Minute)
		leader, err := h.cluster.LeaderOf(bounded, h.topics[h.random.IntN(len(h.topics))], h.random.IntN(3))
		if err == nil {
			err = fault.do(bounded, leader)
		}
		for _, topic := range h.topics {
			if err == nil {
				err = h.cluster.AwaitISR(bounded, topic)
			}
		}
		cancel()
		if err != nil {
			return err
		}
		h.counts[fault.name]++
	}
	return nil
}

func (h *harm) kill(ctx context.Context, id int) error {
	if err := h.cluster.Kill(id); err != nil {
		return err
	}
	h.wait(4 * time.Second)
	return h.cluster.StartNodes(ctx, id)
}

// pause lasts for more than the brokers' session, and sometimes for less.
func (h *harm) pause(_ context.Context, id int) error {
	if err := h.cluster.Pause(id); err != nil {
		return err
	}
	h.wait(7 * time.Second)
	return h.cluster.Resume(id)
}

// move takes the leadership of all that the broker leads.
func (h *harm) move(ctx context.Context, id int) error {
	for _, topic := range h.topics {
		for partition := range 3 {
			leader, err := h.cluster.LeaderOf(ctx, topic, partition)
			if err != nil {
				return err
			}
			if leader != id {
				continue
			}
			if err := h.cluster.MoveLeader(ctx, topic, partition, id%3+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *harm) wait(longest time.Duration) {
	<-time.After(time.Duration(h.random.Int64N(int64(longest))))
}
