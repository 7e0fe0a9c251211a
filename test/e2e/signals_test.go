package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaHearsSignals: the exporter is killed around each signal, which its sender sends again. Each snapshot is given to
// its end, and told of to its end. Broken messages, and a topic that is made anew, keep nobody from asking. A kill
// between a snapshot's end and its saving may repeat that end, as that of any snapshot.
func kafkaHearsSignals(t *testing.T, c *kafka.Cluster) {
	lake := kafkaSink{name: "lake", prefix: "sig.dev.", delivery: "idempotent",
		more: threeReplicas + ", signals: {topic: sig.signals, notifications: sig.notes}"}
	r := newKafkaRig(t, c, lake)
	r.exporter.args = append(r.exporter.args, "--cluster", "e2e")
	r.writer.populate(t)
	r.exporter.start(t)
	r.streaming()
	s := r.newSignaller(c, "sig")
	s.awaitUp()
	random := rand.New(rand.NewPCG(seed(t), 23))
	for i := range kills(t, 3) {
		exporter, over := r.exporter.process, make(chan struct{})
		s.send(snapshotSignal(i))
		time.AfterFunc(time.Duration(random.Int64N(int64(1500*time.Millisecond))), func() { // any instant until it is read
			exporter.Kill()
			close(over)
		})
		<-over
		s.sendAgain(i)
	}
	s.send("{", strings.Repeat("[", 60_000), strings.Repeat("x", 900_000), `{"type":"`+strings.Repeat("y", 5000)+`"}`)
	r.stopIdle() // it would make the topic itself
	c.DeleteTopic(t, s.signals)
	c.CreateTopic(t, s.signals, kafka.Topic{Partitions: 3})
	s.send(`{"id":"anew","type":"execute-snapshot","data":{"data-collections":["configmaps"],"additional-condition":"selector='signal=anew'"}}`)
	s.awaitTold("anew", "COMPLETED")
	r.settle()
	r.stopIdle()
	r.judge(false)
}

// kafkaLeadersHearSignals: an exporter that takes over follows the signals that the leader had read, or not yet read,
// when it was killed or stopped.
func kafkaLeadersHearSignals(t *testing.T, c *kafka.Cluster) {
	lake := kafkaSink{name: "lake", prefix: "hasig.dev.", delivery: "transactional",
		more: threeReplicas + ", signals: {topic: hasig.signals, notifications: hasig.notes}"}
	m := newCrew(t, 1)
	m.topics = append(m.topics, followTopics(c, lake, m.names()))
	m.config = lake.config(c)
	m.enlist(2, "lake, name: hasig-state")
	for _, x := range m.all {
		x.args = append(x.args, "--cluster", "e2e")
	}
	m.begin(0)
	leader := m.awaitLeader(nil)
	s := m.newSignaller(c, "hasig")
	s.awaitUp()
	random := rand.New(rand.NewPCG(seed(t), 29))
	for i := range kills(t, 3) {
		s.send(snapshotSignal(i))
		time.Sleep(time.Duration(random.Int64N(int64(1500 * time.Millisecond)))) // any instant until it is read
		before := leader
		if i%2 == 0 {
			m.die(before, false)
		} else {
			m.stop(before)
		}
		leader = m.awaitLeader(before)
		before.start(t)
		s.sendAgain(i)
	}
	m.conclude()
	m.awaitTransactions(c, lake)
}

// snapshotSignal asks for a snapshot of the config maps that are labelled with its number.
func snapshotSignal(i int) string {
	return fmt.Sprintf(`{"id":"signal-%d","type":"execute-snapshot","data":{"data-collections":["config.*"],"type":"INCREMENTAL",`+
		`"additional-conditions":[{"data-collection":"configmaps","filter":"selector='signal=s%d'"}]}}`, i, i)
}

// signaller sends signals, and reads what is told of them.
type signaller struct {
	r       *rig
	c       *kafka.Cluster
	signals string // topic
	tail    *kafka.Tail
	told    map[string][]string // by the signal's id
}

// newSignaller has the topics of signals and of notifications that begin with the prefix.
func (r *rig) newSignaller(c *kafka.Cluster, prefix string) *signaller {
	tail := c.Tail(prefix+".notes", kafka.JudgeOptions{})
	return &signaller{r: r, c: c, signals: prefix + ".signals", tail: tail, told: map[string][]string{}}
}

// sendAgain sends signal i as one who has not heard that it was sent, before and after its snapshot has come to its
// end. The snapshot comes once, or its end twice.
func (s *signaller) sendAgain(i int) {
	t, id, selector := s.r.t, fmt.Sprintf("signal-%d", i), fmt.Sprintf("signal=s%d", i)
	t.Helper()
	s.send(snapshotSignal(i))
	s.awaitTold(id, "COMPLETED")
	ends := limitedEnds(t, s.r.topics[0])[selector]
	if ends < 1 || ends > 2 {
		t.Errorf("the snapshot of %s has %d ends, want 1, and another one at most for the exporter's end", selector, ends)
	}
	s.send(snapshotSignal(i))
	s.awaitTold(id, "SKIPPED")
	if again := limitedEnds(t, s.r.topics[0])[selector]; again != ends {
		t.Errorf("sent again, the snapshot of %s has %d ends, want %d", selector, again, ends)
	}
}

// awaitUp waits until the exporter has looked at the topic: what comes after that is followed.
func (s *signaller) awaitUp() {
	s.r.t.Helper()
	eventually(s.r.t, deliveryLimit, "the exporter hears signals", func() bool {
		asking := s.r.exporter.statuses(s.r.t).Sinks["lake"].Asking
		return asking != nil && asking.LastError == ""
	})
}

func (s *signaller) send(values ...string) {
	t := s.r.t
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.c.Brokers()...), kgo.DefaultProduceTopic(s.signals), kgo.UnknownTopicRetries(100))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, value := range values {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte("e2e"), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitTold waits until the notification was sent, by whatever life of the exporter.
func (s *signaller) awaitTold(id, kind string) {
	s.r.t.Helper()
	eventually(s.r.t, deliveryLimit, id+" is told "+kind, func() bool {
		s.r.restart()
		records, err := s.tail.Read(s.r.t.Context())
		if err != nil {
			s.r.t.Fatal(err)
		}
		for _, record := range records {
			var n struct{ ID, Type string }
			if err := json.Unmarshal(record.Value, &n); err != nil || string(record.Key) != "e2e" {
				s.r.t.Fatalf("a notification is %s: %s (%v)", record.Key, record.Value, err)
			}
			s.told[n.ID] = append(s.told[n.ID], n.Type)
		}
		return slices.Contains(s.told[id], kind)
	})
}
