package app

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// kafkaPlan is how three exporters of two clusters are configured for one Kafka.
type kafkaPlan struct {
	same          bool   // both clusters have one name, as by default
	topic         string // template
	ids           string // "": the default, of cluster and sink; "one": all are given the same; "own": each has its own
	transactional bool
	compact       bool
	ownTopics     bool // each exporter has topics of its own
	atOnce        bool // all start at the same time
}

func (p kafkaPlan) String() string {
	return fmt.Sprintf("at once %t, same name %t, topic %q, each its own %t, ids %q, transactional %t, compact %t",
		p.atOnce, p.same, p.topic, p.ownTopics, p.ids, p.transactional, p.compact)
}

const (
	topicOfCluster = "k8s.{cluster}.{resource}"
	topicOfLabel   = "changes.{label:team}"
	topicOfAll     = "changes"
)

// sinks is the exporter's configuration: Kafka, and a file, which is to notice nothing. The prefix keeps plans apart.
func (p kafkaPlan) sinks(c *kafka.Cluster, n *neighbour, prefix string) string {
	bus, topic := "bus", prefix+p.topic
	if p.ownTopics {
		topic = prefix + n.name + "." + p.topic
	}
	keys := []string{fmt.Sprintf("brokers: [%s], topic: %q, partitions: 2", strings.Join(c.Brokers(), ", "), topic)}
	switch p.ids {
	case "":
		bus += "-" + strings.TrimSuffix(prefix, ".")
	case "one":
		keys = append(keys, "transactionalId: "+prefix+"one")
	case "own":
		keys = append(keys, "transactionalId: "+prefix+n.name)
	}
	if p.transactional {
		keys = append(keys, "delivery: transactional")
	}
	if p.compact {
		keys = append(keys, "cleanup: compact")
	}
	return fmt.Sprintf("- {name: %s, kafka: {%s}}\n- {name: file, file: {path: %q}}\n", bus, strings.Join(keys, ", "), n.file())
}

// apart says whether no two of the exporters can be in each other's way. Two exporters of one cluster tell of the same.
func (p kafkaPlan) apart() bool {
	return p.ids == "own" && (p.ownTopics || !p.same && (p.topic == topicOfCluster || !p.compact))
}

// blind says that two clusters cannot see each other before both have written: Kafka writes nothing on a condition.
// Their first records may meet in a topic, and nothing after them.
func (p kafkaPlan) blind() bool {
	return p.atOnce && !p.transactional && (p.ids == "own" || p.ids == "" && !p.same)
}

// someKafkaPlans are as people make them by mistake, and allKafkaPlans every combination.
func someKafkaPlans() []kafkaPlan {
	return []kafkaPlan{
		{same: true, topic: topicOfCluster},
		{same: true, topic: topicOfCluster, atOnce: true, compact: true},
		{same: true, topic: topicOfAll, ids: "own", atOnce: true},
		{same: true, topic: topicOfLabel, ids: "own"},
		{topic: topicOfAll, ids: "own", compact: true},
		{topic: topicOfAll, ids: "one", transactional: true},
		{topic: topicOfCluster, ids: "one", atOnce: true},
		{topic: topicOfCluster, ids: "own"},
	}
}

func allKafkaPlans() (all []kafkaPlan) {
	truth := []bool{true, false}
	for _, same := range truth {
		for _, topic := range []string{topicOfCluster, topicOfAll, topicOfLabel} {
			for _, own := range truth {
				for _, ids := range []string{"", "one", "own"} {
					for _, transactional := range truth {
						for _, compact := range truth {
							for _, atOnce := range truth {
								p := kafkaPlan{same, topic, ids, transactional, compact, own, atOnce}
								if !compact || topic != topicOfLabel {
									all = append(all, p)
								}
							}
						}
					}
				}
			}
		}
	}
	return all
}

// TestI10NeighboursOnOneKafka: three exporters of two clusters on one Kafka, with their settings right and wrong.
// Whatever they are, nobody is told another's object: where two clusters have one name, or a topic is compacted, no
// topic has records of both. Only the sink that cannot go on stops, and says which key to set; the file beside it has
// everything. NEIGHBOURS=all plays every combination of the settings.
func TestI10NeighboursOnOneKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka broker")
	}
	kafka.RequireReal(t)
	c := kafka.Start(t, kafka.Options{})
	plans := someKafkaPlans()
	if os.Getenv("NEIGHBOURS") == "all" {
		plans = allKafkaPlans()
	}
	for i, p := range plans {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			s := newKafkaStreet(t, c, p, fmt.Sprintf("n%d.", i))
			if p.atOnce {
				s.together()
			}
			s.each()
			s.crash(s.each)
			s.each()
			s.together()
			s.each()
			s.judge()
		})
	}
}

// kafkaStreet is a street with a Kafka.
type kafkaStreet struct {
	street
	plan   kafkaPlan
	kafka  *kafka.Cluster
	prefix string
}

func newKafkaStreet(t *testing.T, c *kafka.Cluster, p kafkaPlan, prefix string) *kafkaStreet {
	s := &kafkaStreet{newStreet(t, p.same), p, c, prefix}
	for _, n := range s.neighbours {
		n.sinks = p.sinks(c, n, prefix)
	}
	return s
}

// told are the records of a topic, as readers of committed ones have them.
func (s *kafkaStreet) told(topic string) (all []kafkaRecord) {
	s.t.Helper()
	s.kafka.AwaitTransactions(s.t, topic)
	for _, r := range s.kafka.ConsumeFast(s.t, topic, kafka.JudgeOptions{ReadCommitted: true}) {
		for _, h := range r.Headers {
			if h.Key != "kubecdc-id" {
				continue
			}
			id, err := change.ParseID(string(h.Value))
			if err != nil {
				s.t.Fatalf("%s: %v", topic, err)
			}
			all = append(all, kafkaRecord{topic, id, string(r.Key)})
		}
	}
	return all
}

type kafkaRecord struct {
	topic string
	id    change.ID
	key   string
}

// topics are those that the plan's exporters have made.
func (s *kafkaStreet) topics() []string {
	s.t.Helper()
	all, err := s.kafka.Topics(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, s.prefix) })
}

func (s *kafkaStreet) judge() {
	s.t.Helper()
	// by cluster's letter, and for topics of their own by exporter: what exists
	states := map[string]map[string]string{}
	first := map[string]bool{} // the versions of the first life
	for _, rec := range history("a", 1) {
		first[rec.ResourceVersion] = true
	}
	for _, topic := range s.topics() {
		clusters, later := map[string]bool{}, map[string]bool{}
		for _, r := range s.told(topic) {
			letter := r.id.Cluster[:1]
			clusters[letter] = true
			later[letter] = later[letter] || r.id.Key.Name != "" && !first[r.id.ResourceVersion]
			if r.id.UID != "" && r.id.UID[:1] != letter {
				s.t.Errorf("%s: object %s is told of under uid %s", topic, r.id.UID, r.id.Cluster)
			}
			place := s.place(topic, letter)
			if states[place] == nil {
				states[place] = map[string]string{}
			}
			switch {
			case r.id.Op == change.Deleted:
				delete(states[place], r.id.Key.Name)
			case r.id.Op.OfObject():
				states[place][r.id.Key.Name] = r.id.UID
			}
		}
		if len(clusters) > 1 && (s.plan.same || s.plan.compact) && (!s.plan.blind() || later["a"] && later["b"]) {
			s.t.Errorf("%s has records of %v, later ones of %v", topic, clusters, later)
		}
	}
	s.judgeEach(states)
}

// place is where the topic's records of the cluster belong together.
func (s *kafkaStreet) place(topic, letter string) string {
	if !s.plan.ownTopics {
		return letter
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(topic, s.prefix), ".")
	return name + " " + letter
}

// judgeEach compares what was told with the clusters, for those that were not refused, and their files for all.
func (s *kafkaStreet) judgeEach(states map[string]map[string]string) {
	s.t.Helper()
	going := 0
	for _, n := range s.neighbours {
		want := existing(history(n.letter(), n.lives))
		if have := n.inFile(); !maps.Equal(have, want) {
			s.t.Errorf("%s: the file has %v, and the cluster %v", n.name, have, want)
		}
		for _, end := range n.ends {
			s.judgeRefusal(n.name, end)
		}
		if n.refused != nil {
			continue
		}
		going++
		if have := states[s.place(s.prefix+n.name+".", n.letter())]; len(n.rejected) == 0 && !maps.Equal(have, want) {
			s.t.Errorf("%s went on, and its topics have %v, the cluster %v", n.name, have, want)
		}
	}
	if going == 0 && !s.plan.atOnce { // whoever begins is not ended by those that come later
		s.t.Error("nobody goes on")
	}
}

// judgeRefusal looks at what ended one life, nil for nothing.
func (s *kafkaStreet) judgeRefusal(name string, end error) {
	s.t.Helper()
	if end == nil {
		return
	}
	text := end.Error()
	remedies := []string{"the key cluster", "kafka.topic", "kafka.transactionalId"}
	switch {
	case !slices.ContainsFunc(remedies, func(key string) bool { return strings.Contains(text, key) }):
		s.t.Errorf("%s is refused without a remedy: %s", name, text)
	case strings.Contains(text, "sink file"):
		s.t.Errorf("%s: the file is not left alone: %s", name, text)
	case s.plan.apart():
		s.t.Errorf("%s has right settings, and is refused: %s", name, text)
	}
	s.t.Logf("%s: %s", name, text)
}
