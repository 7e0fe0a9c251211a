package wire

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/test/kafka"
)

func everyListener() []kafka.Listener {
	return []kafka.Listener{kafka.SASL, kafka.TLS, kafka.MutualTLS, kafka.SASLTLS, kafka.OtherName}
}

// secured has every listener and needs ACLs: alice may do everything, bob nothing.
var secured = kafka.Shared{Options: kafka.Options{
	Listeners:  everyListener(),
	Users:      map[string]string{"alice": "wonderland", "bob": "builder"},
	ACLs:       true,
	SuperUsers: []string{"alice", kafka.ClientUser, "token"},
}}

// realKafka skips the test where there is no Kafka.
func realKafka(t *testing.T) *kafka.Cluster {
	t.Helper()
	kafka.RequireReal(t)
	return secured.Get(t)
}

func TestMain(m *testing.M) {
	code := secured.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func open(t *testing.T, options Options) *Cluster {
	t.Helper()
	c, err := New(options)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// topicName is one that no other test has.
func topicName(t *testing.T) string {
	return strings.NewReplacer("/", "-", " ", "_", ",", "", "=", "", ":", "").Replace(t.Name())
}

// made creates a topic for one test.
func made(t *testing.T, c *Cluster, partitions int32, configs map[string]string) string {
	t.Helper()
	name := topicName(t)
	if _, err := settle(t.Context(), func() (bool, error) {
		return true, c.Create(t.Context(), TopicSpec{Name: name, Partitions: partitions, Configs: configs})
	}); err != nil {
		t.Fatal(err)
	}
	return name
}

func producer(t *testing.T, c *Cluster) Producer {
	t.Helper()
	p, err := settle(t.Context(), func() (Producer, error) { return c.InitProducer(t.Context(), "", 0, NoProducer()) })
	must(t, err)
	return p
}

// limit is far more than anything takes here on a busy machine.
const limit = 2 * time.Minute

// settle repeats what brokers put off for a moment after a topic or a transaction was made, and what they did not
// answer in time.
func settle[T any](ctx context.Context, attempt func() (T, error)) (T, error) {
	return repeated(ctx, func(err error) bool { return Classify(err) == Retriable }, attempt)
}

// answered repeats what the brokers did not answer in time.
func answered(ctx context.Context, attempt func() error) error {
	_, err := repeated(ctx, func(err error) bool { return Code(err) == 0 && Classify(err) == Retriable }, func() (bool, error) {
		return true, attempt()
	})
	return err
}

func repeated[T any](ctx context.Context, again func(error) bool, attempt func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		result, err := attempt()
		if err == nil || !again(err) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sent is produced, as soon as brokers take it.
func sent(t *testing.T, c *Cluster, r ProduceRequest) (int64, error) {
	return settle(t.Context(), func() (int64, error) { return c.Produce(t.Context(), r) })
}

func mustSend(t *testing.T, c *Cluster, r ProduceRequest) {
	t.Helper()
	_, err := sent(t, c, r)
	must(t, err)
}
