package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// definedTopics is what the scenario's sinks say of topics that are made.
const definedTopics = threeReplicas + ", cleanup: 'compact,delete', retention: 36h, topicConfig: {segment.ms: '86400000', max.message.bytes: '2097152'}"

// kafkaFollowsDefinitions: a definition that appears while the exporter runs, one that appears just before it is
// killed, and one that vanishes. Their topics are made as the sinks say, also under a template of their own, and have
// each change once. A sink that may make none has letters of the definition without a topic, also after a restart, and
// goes on with the others.
func kafkaFollowsDefinitions(t *testing.T, c *kafka.Cluster) {
	plain := kafkaSink{name: "idempotent", prefix: "di.dev.", delivery: "idempotent", more: definedTopics}
	whole := kafkaSink{name: "transactional", prefix: "dt.dev.", delivery: "transactional", more: definedTopics}
	own := whole // of its streams, by a wildcard
	own.prefix, whole.more = "own.", definedTopics+`, topics: {"*.gadgets.example.com": "own.{resource}"}`
	given := kafkaSink{name: "given", prefix: "dg.dev.", delivery: "idempotent", more: ", create: false"}
	r := newRigOfWildcard(t, served{configured: "resources: ['*.gadgets.example.com']\n", sinks: plain.config(c) + whole.config(c) + given.config(c), context: "dev"})
	known := []string{"gears.gadgets.example.com", "cogs.gadgets.example.com"}
	r.topics = []*follower{followTopics(c, plain, known), followTopics(c, own, known)}
	c.CreateTopic(t, topicOf(given.prefix, known[0]), kafka.Topic{})
	gears := followTopics(c, given, known[:1])
	r.starts()
	r.eventuallyPage("the wildcard stands for nothing", func(p page) bool { return p.Ready && p.Discovery.LeftOut["*.gadgets.example.com"] != "" })

	r.define("gear")
	gear := r.made("gear", "a")
	r.await(gear)
	patch := []byte(`{"metadata":{"labels":{"changed":"once"}}}`)
	if _, err := r.client.Resource(gadgets("gear")).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	wantDefined(t, c, topicOf(plain.prefix, known[0]), topicOf(own.prefix, known[0]))

	r.define("cog")
	r.eventuallyPage("cogs have a stream", func(p page) bool { _, found := p.Streams["cogs.gadgets.example.com"]; return found })
	r.exporter.process.Kill()
	cog := r.made("cog", "a")
	r.starts()
	r.await(cog)
	wantDefined(t, c, topicOf(plain.prefix, known[1]), topicOf(own.prefix, known[1]))

	r.undefine("gear")
	for _, sink := range r.sinks() {
		sink.await(t, r.exporter, "the delete of the gear", func(e *event) bool { return e.UID == gear && e.op() == "deleted" })
	}
	gears.await(t, r.exporter, "the delete of the gear", func(e *event) bool { return e.UID == gear && e.op() == "deleted" })
	for _, l := range r.letters() {
		if l.Sink != given.name || l.Reason != "topic" || !strings.Contains(l.Event, "/"+known[1]+"/") {
			t.Errorf("%+v is a letter, want those of cogs for the sink %s alone", l, given.name)
		}
	}
	r.await(r.made("cog", "b"))
	r.stopIdle()
	r.awaitTransactions(c, whole)
	for _, sink := range r.sinks() {
		j := newJudge(sink.name, nil, true)
		for i := range sink.all(t) {
			j.hearForm(&sink.events[i])
		}
		if len(j.faults) > 0 {
			t.Errorf("the sink %s is wrong:\n%s", sink.name, strings.Join(j.faults, "\n"))
		}
		wantTold(t, r.toldTo(sink, gear), "added, updated, deleted")
		wantTold(t, r.toldTo(sink, cog), "added")
	}
}

// wantDefined wants topics as the sinks define them.
func wantDefined(t *testing.T, c *kafka.Cluster, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		if got := c.Replicas(t, topic); !slices.Equal(got, []int{3, 3, 3}) {
			t.Errorf("the partitions of topic %s have %v replicas, want 3 in each of 3", topic, got)
		}
		got := c.TopicConfig(t, topic)
		for key, want := range map[string]string{
			"min.insync.replicas": "2", "cleanup.policy": "compact,delete", "retention.ms": "129600000", "segment.ms": "86400000", "max.message.bytes": "2097152",
		} {
			if got[key] != want {
				t.Errorf("topic %s has %s=%s, want %s", topic, key, got[key], want)
			}
		}
	}
}

// wantTold takes the first record of an object from the first snapshot or from the watch.
func wantTold(t *testing.T, got, want string) {
	t.Helper()
	if strings.Replace(got, "replaced", "added", 1) != want {
		t.Errorf("an object is told as %q, want %q", got, want)
	}
}
