package kafka

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// theirs are messages of a cluster for which judgeOf has a word.
func theirs(topic string, n int) []sink.Message {
	all := messagesOf(topic, n)
	for i := range all {
		all[i].ID = "theirs-" + all[i].ID
	}
	return all
}

// TestI10TwoClustersThatBeginAtOnceFindEachOther: when both opened, the topic was empty. The first records of the
// second one tell, and in a transaction nobody reads them.
func TestI10TwoClustersThatBeginAtOnceFindEachOther(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		options.Partitions = 1
		topic := options.Topics[0]
		other := opened(t, options)
		options.TransactionalID, options.Judge = topic+"-ours", judgeOf(true)
		ours := opened(t, options)
		mustWrite(t, ours, messagesOf(topic, 3))
		mark := mustWrite(t, ours, messagesOf(topic, 6)[3:])
		theirMark := mustWrite(t, other, theirs(topic, 3))
		cluster.AwaitTransactions(t, topic)
		_, err := ours.Write(t.Context(), messagesOf(topic, 9)[6:])
		expectRefusal(t, "write behind the others", err, "the key cluster")
		must(t, ours.Close(t.Context()))
		_, err = sinktest.Open(t.Context(), newTestSink(t, options), mark)
		expectRefusal(t, "open", err, "the key cluster")
		want := 9
		if options.Delivery == Transactional { // and so the other one goes on
			want = 6
			options.TransactionalID, options.Judge = topic, func(m *sink.Stored) error {
				if strings.HasPrefix(m.Header(sink.HeaderID), "theirs-") {
					return nil
				}
				return &sink.ForeignError{Place: m.Place, Cluster: "ours", UID: "dddddddd", Ours: "theirs", Same: true}
			}
			opened(t, options, theirMark)
		}
		written := 0
		for _, r := range committed(t, cluster, topic) {
			if !strings.HasPrefix(string(r.Headers[0].Value), "theirs-") {
				written++
			}
		}
		if written != want {
			t.Errorf("readers have %d records of ours, want %d", written, want)
		}
	})
}

// TestI10AnotherClustersOpenTransactionIsFoundWhenItHasEnded: until then it lies behind what is decided, and nobody may
// read it.
func TestI10AnotherClustersOpenTransactionIsFoundWhenItHasEnded(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	options := transactional(t, cluster, 1)
	options.Partitions = 1
	topic := options.Topics[0]
	other := opened(t, options)
	options.TransactionalID, options.Judge = topic+"-ours", judgeOf(true)
	ours := opened(t, options)
	clock := ours.now()
	ours.now = func() time.Time { return clock }
	mustWrite(t, ours, messagesOf(topic, 3))
	cluster.AwaitTransactions(t, topic)
	leaveOpen(t, other, theirs(topic, 3))
	mustWrite(t, ours, messagesOf(topic, 6)[3:])
	must(t, other.cluster.EndTransaction(t.Context(), other.right.tx(), true))
	cluster.AwaitTransactions(t, topic)
	clock = clock.Add(time.Minute)
	_, err := ours.Write(t.Context(), messagesOf(topic, 9)[6:])
	expectRefusal(t, "write behind the others", err, "the key cluster")
}

// TestASharedTopicIsLookedAtNowAndThen: records of a cluster with another name stop nobody, and cost little.
func TestASharedTopicIsLookedAtNowAndThen(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	options.Partitions = 1
	topic := options.Topics[0]
	other := opened(t, options)
	judged := 0
	options.TransactionalID = topic + "-ours"
	options.Judge = func(m *sink.Stored) error {
		judged++
		return judgeOf(false)(m)
	}
	ours := opened(t, options)
	clock := ours.now()
	ours.now = func() time.Time { return clock }
	for range 20 {
		mustWrite(t, other, theirs(topic, 1))
		mustWrite(t, ours, messagesOf(topic, 1))
	}
	if judged == 0 || judged > 3 {
		t.Errorf("%d records were looked at while the clock stood still", judged)
	}
}

// TestI10ATopicOfDataMayBeAnotherClusters: one under our name ends the sink, as any other does. A compacted one under
// another name is nothing that the sink can be ended by, since data chose it.
func TestI10ATopicOfDataMayBeAnotherClusters(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := broker.Get(t)
	for _, same := range []bool{true, false} {
		options := testOptions(t, cluster, 2)
		options.Cleanup = "compact"
		good, chosen := options.Topics[0], options.Topics[1]
		other := opened(t, options)
		options.Topics, options.TransactionalID, options.Judge = options.Topics[:1], good+"-ours", judgeOf(same)
		ours := opened(t, options)
		mark := mustWrite(t, ours, messagesOf(chosen, 3))
		mustWrite(t, other, theirs(chosen, 3))
		next := newTestSink(t, options)
		if same {
			_, err := sinktest.Open(t.Context(), next, mark)
			expectRefusal(t, "open", err, "the key cluster")
			next = opened(t, options)
			_, err = next.Write(t.Context(), messagesOf(chosen, 1))
			expectRefusal(t, "write", err, "the key cluster")
			continue
		}
		open(t, next, mark)
		rejects(t, next, good, chosen, "put {cluster} into kafka.topic")
		_, err := ours.Write(t.Context(), messagesOf(chosen, 20))
		expectReopen(t, err)
	}
}

// TestI10TakenOverWhileItOpens: of two that open at once the older one is told so, and stops alone.
func TestI10TakenOverWhileItOpens(t *testing.T) {
	kafkatest.RequireReal(t)
	options := testOptions(t, broker.Get(t), 1)
	older := newTestSink(t, options)
	connected(t, older)
	found, err := older.catalog.examineAll(t.Context(), &mark{})
	if err == nil {
		err = older.right.enroll(t.Context())
	}
	must(t, err)
	opened(t, options)
	expectFenced(t, older.right.fence(t.Context(), found), "kafka.transactionalId")
}

// TestTopicsThatDataChoseAreReadByTheTimesOfTheirRecords: an object goes on in another topic, and its tombstone follows
// its delete.
func TestTopicsThatDataChoseAreReadByTheTimesOfTheirRecords(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 3)
	options.Partitions = 2
	began := time.Now().Truncate(time.Second)
	s := opened(t, options)
	var written []sink.Message
	for i := range 60 {
		m := message(options.Topics[2-i%3], "moves", fmt.Sprint("id-", i))
		m.Time = began.Add(time.Duration(i/2) * time.Second)
		if i%2 == 1 { // after a delete
			m.Destination, m.Value = written[i-1].Destination, nil
		}
		written = append(written, m)
	}
	for part := range slices.Chunk(written, 20) {
		mustWrite(t, s, part)
	}
	options.Others = regexp.MustCompile("^" + options.Topics[0] + "|" + options.Topics[1] + "|" + options.Topics[2] + "$")
	options.Topics = options.Topics[:1]
	reader, err := NewReader(options, sink.Start{})
	must(t, err)
	defer reader.Close()
	var read []string
	for range 2 { // nothing comes again
		must(t, reader.Read(within(t), func(m *sink.Stored) error {
			read = append(read, m.Header(sink.HeaderID))
			return nil
		}))
	}
	if want := idsOf(written); !slices.Equal(read, want) {
		t.Errorf("read %q\nwant %q", read, want)
	}
}
