package badinput

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestSignalsInATopicOfRecords would be records of signals, and signals of records.
func TestSignalsInATopicOfRecords(t *testing.T) {
	d := newDesk(t)
	for key, want := range map[string]string{
		`topic: k8s.dev.configmaps`:                 "sink lake: kafka.signals.topic: records of configmaps go to topic k8s.dev.configmaps: choose another topic",
		`notifications: "k8s.{cluster}.configmaps"`: "sink lake: kafka.signals.notifications: records of configmaps go to topic k8s.dev.configmaps: choose another topic",
	} {
		d.kafkaConfig([]string{"127.0.0.1:1"}, ", signals: {"+key+"}")
		d.exporter(usual("-f", "config.yaml")...).fails(t, 2, want)
	}
}

// TestSignalMistakes: what check says, and that records go on all the same. Hostile signals blind nobody.
func TestSignalMistakes(t *testing.T) {
	kafka.RequireReal(t)
	c := brokers.Get(t)
	d := newDesk(t)
	c.CreateTopic(t, "steered", kafka.Topic{})
	c.CreateTopic(t, "compacted", kafka.Topic{Config: map[string]string{"cleanup.policy": "compact"}})
	checks := func(settings, want string) {
		t.Helper()
		d.kafkaConfig(c.Brokers(), ", topic: steered, create: false, signals: {"+settings+"}")
		if r := d.exporter(checking("-f", "config.yaml")...); r.Code != 1 || !strings.Contains(r.Stdout, "problem  sink lake: "+want) {
			t.Errorf("%s: check says %s", settings, r.Stdout)
		}
	}
	checks("topic: missing", "look up topic missing: it does not exist: create it, or let the exporter do it with kafka.create")
	checks("topic: compacted", "use topic compacted: it is compacted, and keeps the newest message of a cluster alone: set its cleanup.policy to delete")
	r := d.start(usual("-f", "config.yaml", "--log-level", "info")...)
	r.logs("watching")
	eventually(t, "the exporter looks at the topic", func() bool { return r.status().Sinks["lake"].Asking != nil })
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.DefaultProduceTopic("compacted"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	long := strings.Repeat("x", 5000)
	for _, value := range []string{
		"{", "[]", `{"type":"` + long + `"}`, strings.Repeat("[", 60_000), strings.Repeat(" ", 400_000),
		fmt.Sprintf(`{"type":"execute-snapshot","data":{"data-collections":[%q]}}`, strings.Repeat("(a*)*", 200)+"b"),
		`{"type":"log","data":{"message":"` + long + `"}}`, `{"type":"execute-snapshot","data":{"data-collections":["configmaps"]}}`,
	} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte("dev"), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the last one is followed", func() bool {
		asking := r.status().Sinks["lake"].Asking
		return asking.Followed == 2 && asking.Refused == 6
	})
	if n := r.times("refused what was asked"); n != 1 {
		t.Errorf("the log has %d lines of what was refused", n)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
