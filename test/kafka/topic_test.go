package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestARequestThatABrokerAsksTwiceIsDone has answers to the first attempt that tell of the change as made before: a
// broker asks a slow controller again by itself.
func TestARequestThatABrokerAsksTwiceIsDone(t *testing.T) {
	c := fakeCluster(t)
	twice(t, c, kmsg.NewPtrCreateTopicsRequest())
	c.CreateTopic(t, "twice", Topic{})
	twice(t, c, kmsg.NewPtrCreatePartitionsRequest())
	c.AddPartitions(t, "twice", 3)
	if got := len(c.Replicas(t, "twice")); got != 3 {
		t.Errorf("partitions: got %d, want 3", got)
	}
	twice(t, c, kmsg.NewPtrDeleteTopicsRequest())
	c.DeleteTopic(t, "twice")
	if got, err := c.Topics(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("topics: got %q, %v, want none", got, err)
	}
}

// twice has the broker do what it is asked next with a key, before it looks at the request.
func twice(t *testing.T, c *Cluster, key kmsg.Request) {
	t.Helper()
	other, err := newClient(c.Brokers()...)
	must(t, err)
	t.Cleanup(other.Close)
	first := true
	c.fake.ControlKey(key.Key(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if first {
			first = false
			c.fake.SleepControl(func() {
				if _, err := other.Request(t.Context(), request); err != nil {
					t.Error(err)
				}
			})
		}
		return nil, nil, false
	})
}

// fakeCluster is kfake, whatever the machine has.
func fakeCluster(t *testing.T) *Cluster {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "")
	t.Setenv("KUBECDC_REQUIRE_KAFKA", "")
	return Start(t, Options{})
}

// TestWithoutJava holds on any machine.
func TestWithoutJava(t *testing.T) {
	c := fakeCluster(t)
	if c.Real() {
		t.Fatal("a cluster without java calls itself real")
	}
	c.CreateTopic(t, "fake", Topic{Partitions: 2})
	client := newProducer(t, c, kgo.DefaultProduceTopic("fake"))
	now := time.UnixMilli(1_700_000_000_123)
	must(t, client.ProduceSync(t.Context(), &kgo.Record{Partition: 1, Value: []byte("v"), Timestamp: now}).FirstErr())
	compare(t, "kfake", c.Consume(t, "fake", JudgeOptions{ReadCommitted: true}), []Record{{Topic: "fake", Partition: 1, Timestamp: now, Value: []byte("v")}})

	if _, err := New(t.Context(), Options{ACLs: true}); err == nil {
		t.Error("ACLs without java: got a cluster, want an error")
	}
	t.Setenv("KUBECDC_REQUIRE_KAFKA", "1")
	if _, err := New(t.Context(), Options{}); err == nil {
		t.Error("required, without java: got a cluster, want an error")
	}
}
