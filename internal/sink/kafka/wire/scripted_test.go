package wire

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// scripted is a cluster whose answers are ours.
func scripted(t *testing.T, brokers int, options Options) (*kfake.Cluster, *Cluster) {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(2, "t"))
	must(t, err)
	t.Cleanup(fake.Close)
	options.Brokers = fake.ListenAddrs()
	return fake, open(t, options)
}

func request(p Producer, sequence int32) ProduceRequest {
	return ProduceRequest{Topic: "t", Batch: batch{Producer: p, sequence: sequence, values: []string{"a"}}.bytes()}
}

// refuse answers the next produce request with a code.
func refuse(fake *kfake.Cluster, code int16) {
	fake.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		asked := r.(*kmsg.ProduceRequest)
		if asked.Acks != -1 || asked.TimeoutMillis <= 0 {
			code = 21
		}
		answer := asked.ResponseKind().(*kmsg.ProduceResponse)
		partition := kmsg.NewProduceResponseTopicPartition()
		partition.Partition, partition.ErrorCode, partition.BaseOffset = asked.Topics[0].Partitions[0].Partition, code, -1
		partition.ErrorMessage = kmsg.StringPtr("scripted")
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = asked.Topics[0].Topic, append(topic.Partitions, partition)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
}

// TestEveryCodeIsClassified walks the table: an answer with each code comes out with its class, and the same bytes go
// through afterwards.
func TestEveryCodeIsClassified(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	p := producer(t, c)
	for i, r := range table() {
		refuse(fake, r.of.Code)
		_, err := c.Produce(t.Context(), request(p, int32(i)))
		if Code(err) != r.of.Code || Classify(err) != r.class {
			t.Errorf("code %d: %v, %s; want %s", r.of.Code, err, Classify(err), r.class)
		}
		c.Refresh()
		if offset, err := c.Produce(t.Context(), request(p, int32(i))); err != nil || offset != int64(i) {
			t.Fatalf("after code %d: offset %d, %v", r.of.Code, offset, err)
		}
	}
}

// TestLeaderMovesAreFollowed holds that the attempt after a refusal goes to the new leader, with no timer in between.
func TestLeaderMovesAreFollowed(t *testing.T) {
	fake, c := scripted(t, 3, Options{})
	p := producer(t, c)
	for i := range int32(20) {
		must(t, fake.MoveTopicPartition("t", 0, i%3))
		_, err := c.Produce(t.Context(), request(p, i))
		if Code(err) == kerr.NotLeaderForPartition.Code {
			_, err = c.Produce(t.Context(), request(p, i))
		}
		if err != nil {
			t.Fatalf("move %d: %v", i, err)
		}
	}
}

// TestNobodyEndsWithWhoAskedForAll: of many who ask for a topic at once one does, and may go before the answer.
func TestNobodyEndsWithWhoAskedForAll(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	asked, left, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	fake.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(asked) })
		<-left
		return nil, nil, false
	})
	first, leave := context.WithCancel(t.Context())
	var others sync.WaitGroup
	begun := make(chan struct{})
	others.Go(func() {
		if _, err := c.leader(first, "t", 0); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone is told %v", err)
		}
	})
	<-asked
	for range 32 {
		others.Go(func() {
			begun <- struct{}{}
			if _, err := c.leader(t.Context(), "t", 0); err != nil {
				t.Errorf("who stays is told %v", err)
			}
		})
		<-begun
	}
	leave()
	close(left)
	others.Wait()
}

func TestCoordinatorMovesAreFollowed(t *testing.T) {
	fake, c := scripted(t, 3, Options{})
	var lookups atomic.Int32
	fake.ControlKey(int16(kmsg.FindCoordinator), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		lookups.Add(1)
		return nil, nil, false
	})
	p, err := c.InitProducer(t.Context(), "tx", time.Minute, NoProducer())
	must(t, err)
	tx := Tx{"tx", p}
	must(t, c.AddPartitions(t.Context(), tx, map[string][]int32{"t": {0, 1}}))
	for _, code := range []int16{14, 15, 16} {
		fake.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
			answer := r.ResponseKind().(*kmsg.EndTxnResponse)
			answer.ErrorCode = code
			return answer, nil, true
		})
		if err := c.EndTransaction(t.Context(), tx, true); Code(err) != code || Classify(err) != Retriable {
			t.Errorf("%v, want code %d", err, code)
		}
	}
	if err := c.EndTransaction(t.Context(), tx, true); err != nil {
		t.Error(err)
	}
	if got := lookups.Load(); got != 4 {
		t.Errorf("the coordinator was looked up %d times, want once and after each of three refusals", got)
	}
}

// TestI7CloseEndsEverything holds that requests under way end with Close, and that nothing of the transport is left.
func TestI7CloseEndsEverything(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "t"))
	must(t, err)
	defer fake.Close()
	silent := listen(t, func(net.Conn) {})
	c, err := New(Options{Brokers: append(fake.ListenAddrs(), silent), Timeout: time.Hour})
	must(t, err)
	p, err := c.InitProducer(t.Context(), "", 0, NoProducer())
	for ; err != nil; p, err = c.InitProducer(t.Context(), "", 0, NoProducer()) { // the silent one was drawn
		if Classify(err) != Retriable {
			t.Fatal(err)
		}
	}
	for _, err = c.leader(t.Context(), "t", 0); err != nil; _, err = c.leader(t.Context(), "t", 0) {
		if Classify(err) != Retriable {
			t.Fatal(err)
		}
	}
	asked := make(chan struct{})
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { close(asked); return nil, nil, true })
	done := make(chan error)
	go func() { _, err := c.Produce(t.Context(), request(p, 0)); done <- err }()
	<-asked
	closed := make(chan struct{})
	go func() { c.Close(); close(closed) }()
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("produce ended with %v, want %v", err, errClosed)
	}
	<-closed
	c.Close()
	if err := c.Reach(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("reach after Close: %v, want %v", err, errClosed)
	}
	if conns := len(c.conns); conns != 0 {
		t.Errorf("%d connections are left", conns)
	}
}

// TestCreateWaitsUntilKnown holds that a topic that was made can be used when Create returns.
func TestCreateWaitsUntilKnown(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	var asked atomic.Int32
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		topics := r.(*kmsg.MetadataRequest).Topics
		if len(topics) == 0 || asked.Add(1) > 3 {
			return nil, nil, false
		}
		answer := r.ResponseKind().(*kmsg.MetadataResponse)
		answer.Topics = []kmsg.MetadataResponseTopic{{Topic: topics[0].Topic, ErrorCode: 3}}
		return answer, nil, true
	})
	if err := c.Create(t.Context(), TopicSpec{Name: "new"}); err != nil || asked.Load() != 4 {
		t.Errorf("created after asking %d times, %v; want it known at the fourth", asked.Load(), err)
	}
}

// TestBrokersThatDieAreNotMisconfigured holds that a cut connection ends no sink.
func TestBrokersThatDieAreNotMisconfigured(t *testing.T) {
	fake, c := scripted(t, 1, Options{})
	fake.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		return nil, errors.New("cut"), true
	})
	if err := c.Reach(t.Context()); err == nil || Classify(err) != Retriable {
		t.Errorf("%v, %s; want it retriable", err, Classify(err))
	}
}

// TestSilentLoginsEnd holds that a broker that hangs during a login holds up nobody: kafka-go sets no deadline there.
func TestSilentLoginsEnd(t *testing.T) {
	// SaslHandshake 0 to 1
	versions := "\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x11\x00\x00\x00\x01"
	address := listen(t, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 1024)); err == nil {
			conn.Write([]byte(versions))
		}
	})
	c := open(t, Options{Brokers: []string{address}, SASL: &SASL{Mechanism: Plain, User: "a", Password: "b"}})
	if err := c.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("%v, want the connection's own timeout", err)
	}
}

// TestI3AThrottledBrokerIsLeftAlone holds that nothing is sent to a broker before the time that it asked for is over:
// it reads nothing meanwhile, and a request would lie there longer than the process lives (KIP-219).
func TestI3AThrottledBrokerIsLeftAlone(t *testing.T) {
	const wait = 500 * time.Millisecond
	var told atomic.Int32
	fake, c := scripted(t, 2, Options{Timeout: wait / 5, Throttled: func(time.Duration) { told.Add(1) }})
	p := producer(t, c)
	must(t, fake.MoveTopicPartition("t", 0, 0))
	must(t, fake.MoveTopicPartition("t", 1, 1))
	var answered, next atomic.Int64
	fake.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		asked := r.(*kmsg.ProduceRequest)
		answer := asked.ResponseKind().(*kmsg.ProduceResponse)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, kmsg.NewProduceResponseTopicPartition())
		answer.Topics, answer.ThrottleMillis = append(answer.Topics, topic), int32(wait.Milliseconds())
		answered.Store(time.Now().UnixNano())
		return answer, nil, true
	})
	mustSend(t, c, request(p, 0))
	other := request(p, 0)
	other.Partition = 1
	mustSend(t, c, other)
	if told.Load() > 0 {
		t.Error("the other broker was waited for, too")
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Produce(ended, request(p, 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request whose context ends meanwhile: %v", err)
	}
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		next.Store(time.Now().UnixNano())
		return nil, nil, false
	})
	mustSend(t, c, request(p, 0))
	if passed := time.Duration(next.Load() - answered.Load()); passed < wait || told.Load() == 0 {
		t.Errorf("the next request came after %s, and it was told %d times; want %s at least", passed, told.Load(), wait)
	}
}
