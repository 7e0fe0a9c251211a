package kafka

import (
	"context"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestThreeBrokersUnderFaults(t *testing.T) {
	RequireReal(t)
	c := Start(t, Options{Nodes: 3})
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	c.CreateTopic(t, "faults", Topic{})
	client := newProducer(t, c, kgo.DefaultProduceTopic("faults"))
	put := func(value string) error { return client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr() }
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	lead := func() int {
		t.Helper()
		id, err := c.LeaderOf(ctx, "faults", 0)
		check("leader", err)
		return id
	}

	led := func(what string, holds func(leader int) bool) { // brokers hear of a new leader one after the other
		t.Helper()
		check(what, c.awaitPartition(ctx, "faults", 0, func(p kmsg.MetadataResponseTopicPartition) bool {
			return p.Leader >= 0 && holds(int(p.Leader))
		}))
	}
	left := func(old int) {
		t.Helper()
		led("another leader", func(leader int) bool { return leader != old })
	}

	first := lead()
	check("kill", c.Kill(first))
	check("write after kill", put("killed"))
	left(first)
	check("start", c.StartNodes(ctx, first))
	check("in sync", c.AwaitISR(ctx, "faults"))

	check("move leader", c.MoveLeader(ctx, "faults", 0, first))
	led("the old leader again", func(leader int) bool { return leader == first })

	check("pause", c.Pause(first))
	check("write while the leader is paused", put("paused"))
	left(first)
	check("resume", c.Resume(first))
	check("in sync", c.AwaitISR(ctx, "faults"))

	stopped := lead()
	check("stop", c.StopNode(stopped))
	check("write after stop", put("stopped"))
	left(stopped)
	check("start", c.StartNodes(ctx))
	check("in sync", c.AwaitISR(ctx, "faults"))

	var got []string
	for _, r := range c.ConsumeFast(t, "faults", JudgeOptions{}) {
		got = append(got, string(r.Value))
	}
	if want := []string{"killed", "paused", "stopped"}; !slices.Equal(got, want) {
		t.Errorf("topic: got %q, want %q", got, want)
	}
	uncleanElectionLoses(t, ctx, c)
}

func uncleanElectionLoses(t *testing.T, ctx context.Context, c *Cluster) {
	t.Helper()
	c.CreateTopic(t, "unclean", Topic{Replication: 2, Config: map[string]string{"min.insync.replicas": "1"}})
	client := newProducer(t, c, kgo.DefaultProduceTopic("unclean"))
	put := func(value string) error { return client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr() }
	if err := put("kept"); err != nil {
		t.Fatal(err)
	}
	if err := c.ElectUnclean(ctx, "unclean", 0, func() error { return put("lost") }); err != nil {
		t.Fatal(err)
	}
	if got := c.ConsumeFast(t, "unclean", JudgeOptions{}); len(got) != 1 || string(got[0].Value) != "kept" {
		t.Errorf("topic after an unclean election: got %v, want what was written before it", got)
	}
}
