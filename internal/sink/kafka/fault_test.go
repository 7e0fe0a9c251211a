package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestThreeBrokersUnderFaults does harm to three brokers, one fault after the other.
func TestThreeBrokersUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three brokers")
	}
	kafkatest.RequireReal(t)
	cluster := kafkatest.Start(t, kafkatest.Options{Nodes: 3})
	for _, fault := range []struct {
		name string
		run  func(*testing.T, *kafkatest.Cluster)
	}{
		{"I3 leader moved, paused and killed", harmedLeader},
		{"I3 tail that is not replicated", unreplicated},
		{"I4 unclean election", unclean},
	} {
		t.Run(fault.name, func(t *testing.T) { fault.run(t, cluster) })
	}
}

// harmedLeader writes in both deliveries, before, during and after each fault of a leader, and Java's consumer finds
// each record once, in order.
func harmedLeader(t *testing.T, cluster *kafkatest.Cluster) {
	writers := []*writer{newWriter(t, cluster, Idempotent), newWriter(t, cluster, Transactional)}
	topic := writers[0].topic
	for _, harm := range []func(leader int) error{
		func(leader int) error { return cluster.MoveLeader(t.Context(), topic, 0, leader%3+1) },
		func(leader int) error {
			err := cluster.Pause(leader)
			sink.Pause(t.Context(), 3*time.Second, nil) // long enough for requests to end without an answer
			return errors.Join(err, cluster.Resume(leader))
		},
		func(leader int) error {
			return errors.Join(cluster.Kill(leader), cluster.StartNodes(t.Context(), leader))
		},
	} {
		over := make(chan struct{})
		var group errgroup.Group
		for _, w := range writers {
			group.Go(func() error { return w.run(t.Context(), over) })
		}
		leader, err := cluster.LeaderOf(t.Context(), topic, 0)
		if err == nil {
			err = errors.Join(harm(leader), cluster.AwaitISR(t.Context(), topic))
		}
		close(over)
		must(t, errors.Join(err, group.Wait()))
	}
	for _, w := range writers {
		cluster.AwaitTransactions(t, w.topic)
		exactlyOnce(t, cluster, w.topic, w.all)
	}
}

// writer does what the pipeline does.
type writer struct {
	sink  *Sink
	topic string
	mark  sink.Mark
	all   []sink.Message
}

func newWriter(t *testing.T, cluster *kafkatest.Cluster, delivery string) *writer {
	options := testOptions(t, cluster, 1)
	options.Delivery, options.Wire.Timeout = delivery, 2*time.Second
	w := &writer{sink: newTestSink(t, options), topic: options.Topics[0]}
	open(t, w.sink, "")
	w.mark = mustWrite(t, w.sink, nil)
	return w
}

// run writes until the fault is over, and a little more.
func (w *writer) run(ctx context.Context, over <-chan struct{}) error {
	for after := 0; after < 5; {
		messages := messagesOf(w.topic, 20)
		for i := range messages {
			messages[i].ID = fmt.Sprintf("id-%06d", len(w.all)+i)
		}
		w.all = append(w.all, messages...)
		if err := w.deliver(ctx, messages); err != nil {
			return err
		}
		select {
		case <-over:
			after++
		default:
		}
	}
	return nil
}

// deliver opens again after every error that Open answers.
func (w *writer) deliver(ctx context.Context, messages []sink.Message) error {
	for {
		next, err := w.sink.Write(ctx, messages)
		if err == nil {
			w.mark = next
			return nil
		}
		var permanent *sink.PermanentError
		if errors.As(err, &permanent) || ctx.Err() != nil {
			return err
		}
		known, err := sinktest.Open(ctx, w.sink, w.mark)
		if err != nil {
			return err
		}
		messages = slices.DeleteFunc(messages, func(m sink.Message) bool { return slices.Contains(known, m.ID) })
	}
}

func exactlyOnce(t *testing.T, cluster *kafkatest.Cluster, topic string, all []sink.Message) {
	t.Helper()
	last := map[string]string{}
	var got []string
	for _, r := range cluster.Consume(t, topic, kafkatest.JudgeOptions{ReadCommitted: true}) {
		id := string(r.Headers[0].Value)
		if key := string(r.Key); id <= last[key] {
			t.Fatalf("%s comes after %s, which has the same key", id, last[key])
		} else {
			last[key] = id
		}
		got = append(got, id)
	}
	sameSet(t, "topic", got, idsOf(all))
}

// unreplicated is a crash after a batch that the leader has and its follower has not, so that no reader sees it yet.
func unreplicated(t *testing.T, cluster *kafkatest.Cluster) {
	options := testOptions(t, cluster, 1)
	topic := options.Topics[0]
	cluster.CreateTopic(t, topic, kafkatest.Topic{Partitions: 1, Replication: 2, Config: map[string]string{"min.insync.replicas": "1"}})
	s := newTestSink(t, options)
	s.tuning.grace = 10 * time.Millisecond
	open(t, s, "")
	mark := mustWrite(t, s, messagesOf(topic, 1))
	known, err := s.cluster.Topic(t.Context(), topic)
	must(t, err)
	p := known.Partitions[0]
	follower := int(p.Replicas[0] + p.Replicas[1] - p.Leader)
	must(t, cluster.Pause(follower))
	resume := sync.OnceFunc(func() {
		if err := cluster.Resume(follower); err != nil {
			t.Error(err)
		}
	})
	defer resume()
	messages := messagesOf(topic, 5)[1:]
	if writeUnreplicated(t, s, options, messages) == nil {
		t.Skip("the follower had it all the same")
	}
	defer time.AfterFunc(time.Second, resume).Stop() // while the tail is read
	s.topics = nil                                   // the process is gone, with all that it knew
	again := newTestSink(t, options)
	sameSet(t, "tail", open(t, again, mark), idsOf(messages))
	must(t, cluster.AwaitISR(t.Context(), topic))
}

// writeUnreplicated gives a Write up when the leader has all five records of the topic.
func writeUnreplicated(t *testing.T, s *Sink, options Options, messages []sink.Message) error {
	given, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(given, messages)
		written <- err
	}()
	awaitAppended(t, options, 5)
	giveUp()
	return <-written
}

// awaitAppended returns when the leader of the topic's only partition has n records, replicated or not.
func awaitAppended(t *testing.T, options Options, n int64) {
	t.Helper()
	c, err := wire.New(options.Wire)
	must(t, err)
	defer c.Close()
	for ctx := within(t); ; sink.Pause(ctx, 10*time.Millisecond, nil) {
		ends, err := c.LogEnds(ctx, options.Topics[0], 1)
		if err == nil && ends[0] >= n {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the leader has %d records, want %d: %v", ends, n, err)
		}
	}
}

// unclean is a broker that forgets what it acknowledged: the next batch tells.
func unclean(t *testing.T, cluster *kafkatest.Cluster) {
	options := testOptions(t, cluster, 1)
	topic := options.Topics[0]
	cluster.CreateTopic(t, topic, kafkatest.Topic{Partitions: 1, Replication: 2, Config: map[string]string{"min.insync.replicas": "1"}})
	s := opened(t, options)
	messages := messagesOf(topic, 30)
	mark := mustWrite(t, s, messages[:10])
	must(t, cluster.ElectUnclean(t.Context(), topic, 0, func() error {
		_, err := s.Write(t.Context(), messages[10:20])
		return err
	}))
	_, err := s.Write(t.Context(), messages[20:])
	expectReopen(t, err)
	expectLost(t, s, mark)
	mustWrite(t, s, messages[20:])
	sameSet(t, "topic", storedIDs(t, cluster, topic), append(idsOf(messages[:10]), idsOf(messages[20:])...))
}
