package wire

import (
	"strings"
	"testing"
	"time"
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
		{"no name", func() error { _, err := c.Topic(ctx, ""); return err }, 17, "kafka.topic"},
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

func TestRefusedBatches(t *testing.T) {
	c := open(t, Options{Brokers: realKafka(t).Brokers()})
	topic := made(t, c, 1, map[string]string{"max.message.bytes": "1000", "cleanup.policy": "compact"})
	p := producer(t, c)
	corrupt := batch{Producer: p, values: []string{"a"}}.bytes()
	corrupt[len(corrupt)-1] ^= 1
	for _, test := range []struct {
		name  string
		batch []byte
		code  int16
		class Class
	}{
		{"too large", batch{Producer: p, values: []string{strings.Repeat("a", 1000)}}.bytes(), 10, TooLarge},
		{"no key, compacted", batch{Producer: p, noKey: true, values: []string{"a"}}.bytes(), 87, Invalid},
		{"from tomorrow", batch{Producer: p, time: time.Now().Add(24 * time.Hour), values: []string{"a"}}.bytes(), 32, Invalid},
		{"changed on the way", corrupt, 2, Reopen},
	} {
		_, err := sent(t, c, ProduceRequest{Topic: topic, Batch: test.batch})
		if Code(err) != test.code || Classify(err) != test.class {
			t.Errorf("%s: %v, want code %d, %s", test.name, err, test.code, test.class)
		}
	}
	if _, err := c.Produce(t.Context(), ProduceRequest{Topic: topic, Partition: 1, Batch: batch{Producer: p, values: []string{"a"}}.bytes()}); Code(err) != 3 {
		t.Errorf("a partition that is not there: %v, want code 3", err)
	}
}
