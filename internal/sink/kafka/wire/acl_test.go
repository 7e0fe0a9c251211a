package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestMissingACLsAreNamed holds that a user learns which permission is missing, and on what.
func TestMissingACLsAreNamed(t *testing.T) {
	real := realKafka(t)
	all := open(t, Options{Brokers: real.Brokers()})
	topic := made(t, all, 1, nil)
	bob := open(t, Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA256, User: "bob", Password: "builder"}})
	ctx, p := t.Context(), producer(t, all)
	tx := Tx{"tx", p}
	// Bob finds leaders nowhere, so what he asks leaders for needs somebody else's knowledge.
	known, err := all.Topic(ctx, topic)
	must(t, err)
	bob.topics[topic] = known
	bob.coordinators["tx"] = known.Partitions[0].Leader
	for _, test := range []struct {
		name string
		do   func() error
		code int16
		want string
	}{
		{"look up", func() error { _, err := bob.Topic(ctx, topic); return err }, 29, "grant the user DESCRIBE on topic " + topic},
		{"create", func() error { return bob.Create(ctx, TopicSpec{Name: "bobs"}) }, 29, "grant the user CREATE on topic bobs or on the cluster"},
		{"settings", func() error { _, err := bob.Settings(ctx, topic); return err }, 29, "grant the user DESCRIBE_CONFIGS on topic " + topic},
		{"producer id", func() error { _, err := bob.InitProducer(ctx, "", 0, NoProducer()); return err }, 31, "grant the user WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"},
		{"transactional producer id", func() error { _, err := bob.InitProducer(ctx, "tx", time.Minute, NoProducer()); return err }, 53, "grant the user WRITE on transactional id tx"},
		{"coordinator", func() error { _, err := bob.InitProducer(ctx, "other", time.Minute, NoProducer()); return err }, 53, "grant the user WRITE on transactional id other"},
		{"add", func() error { return bob.AddPartitions(ctx, tx, map[string][]int32{topic: {0}}) }, 53, "grant the user WRITE on transactional id tx"},
		{"commit", func() error { return bob.EndTransaction(ctx, tx, true) }, 53, "grant the user WRITE on transactional id tx"},
		{"produce", func() error {
			_, err := bob.Produce(ctx, ProduceRequest{Topic: topic, Batch: batch{Producer: p, values: []string{"a"}}.bytes()})
			return err
		}, 29, "grant the user WRITE on topic " + topic},
		{"fetch", func() error { _, err := bob.Fetch(ctx, FetchRequest{Topic: topic}); return err }, 29, "grant the user READ on topic " + topic},
		{"ends", func() error { _, err := bob.Bounds(ctx, topic, 1, false); return err }, 29, "grant the user DESCRIBE on topic " + topic},
	} {
		err := answered(ctx, test.do)
		if Code(err) != test.code || Classify(err) != Fatal || !strings.Contains(Explain(err).Error(), test.want) {
			t.Errorf("%s: %v; want code %d and %q", test.name, Explain(err), test.code, test.want)
		}
	}
}
