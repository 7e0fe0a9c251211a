package kafka

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// TestI3WriteWhoseSharedRequestFails in part, as one leader moves, or as a whole, as the connection is cut: all of the
// Write is in the log once, in order.
func TestI3WriteWhoseSharedRequestFails(t *testing.T) {
	t.Run(Idempotent, func(t *testing.T) { sharedRequestFails(t, Idempotent) })
	t.Run(Transactional, func(t *testing.T) { sharedRequestFails(t, Transactional) })
}

func sharedRequestFails(t *testing.T, delivery string) {
	for name, harm := range map[string]func(*kfake.Cluster) error{
		"":             func(*kfake.Cluster) error { return nil },
		"leader moved": func(fake *kfake.Cluster) error { return fake.MoveTopicPartition("t", 1, 1) },
		"cut": func(fake *kfake.Cluster) error {
			fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake, options := ledByOne(t)
			options.Delivery = delivery
			s := opened(t, options)
			mark := mustWrite(t, s, messagesOf("t", 20))
			var requests atomic.Int32
			fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				fake.KeepControl()
				requests.Add(1)
				return nil, nil, false
			})
			must(t, harm(fake))
			messages := messagesOf("t", 60)[20:]
			mustWrite(t, s, messages)
			if name == "" && requests.Load() != 1 {
				t.Errorf("%d requests for two partitions of one broker, want 1", requests.Load())
			}
			got := open(t, newTestSink(t, options), mark)
			sameSet(t, "topic", got, idsOf(messages))
			for i := range len(messages) - 10 { // the next one of the key is ten further on
				if slices.Index(got, messages[i].ID) > slices.Index(got, messages[i+10].ID) {
					t.Errorf("%s is after %s", messages[i].ID, messages[i+10].ID)
				}
			}
		})
	}
}

// ledByOne is a topic of two partitions that one of two brokers leads.
func ledByOne(t *testing.T) (*kfake.Cluster, Options) {
	t.Helper()
	fake := newFake(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "t"))
	for number := range int32(2) {
		must(t, fake.MoveTopicPartition("t", number, 0))
	}
	return fake, Options{Wire: wire.Options{Brokers: fake.ListenAddrs()}, Topics: []string{"t"}, TransactionalID: "tx"}
}
