package wire

import (
	"strings"
	"testing"
)

func TestTopicsThatCannotBe(t *testing.T) {
	c := open(t, Options{Brokers: realKafka(t).Brokers()})
	ctx := t.Context()
	create := func(spec TopicSpec) func() error { return func() error { return c.Create(ctx, spec) } }
	for _, test := range []struct {
		name string
		do   func() error
		code int16
		want string
	}{
		{"missing", func() error { _, err := c.Topic(ctx, "missing"); return err }, 3, "create the topic, or let the exporter create it"},
		{"settings of a missing one", func() error { _, err := c.Settings(ctx, "missing"); return err }, 3, "create the topic"},
		{"produce to a missing one", func() error {
			_, err := c.Produce(ctx, ProduceRequest{Topic: "missing", Batch: batch{values: []string{"a"}}.bytes()})
			return err
		}, 3, "create the topic"},
		{"bad name", func() error { _, err := c.Topic(ctx, "a b"); return err }, 17, "kafka.topic"},
		{"create a bad name", create(TopicSpec{Name: "a b"}), 17, "kafka.topic"},
		{"create no name", create(TopicSpec{}), 17, "kafka.topic"},
		{"too many replicas", create(TopicSpec{Name: "x", Replication: 3}), 38, "set kafka.replication to at most the number of brokers"},
		{"no partitions", create(TopicSpec{Name: "x", Partitions: -5}), 37, "kafka.partitions"},
		{"bad setting", create(TopicSpec{Name: "x", Configs: map[string]string{"cleanup.policy": "burn"}}), 40, "burn"},
	} {
		if err := answered(ctx, test.do); Code(err) != test.code || !strings.Contains(Explain(err).Error(), test.want) {
			t.Errorf("%s: %v; want code %d and %q", test.name, Explain(err), test.code, test.want)
		}
	}
}
