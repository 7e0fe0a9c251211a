package people

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestTailOfKafkaNeedsNoCluster: there is no kubeconfig and no API server. It finds the topics at the brokers, that of
// a resource whose definition is gone, too, merges their partitions by time, and leaves out what only has a similar
// topic.
func TestTailOfKafkaNeedsNoCluster(t *testing.T) {
	r := &rig{t: t, dir: t.TempDir(), namespace: "prod", kafka: brokers.Get(t)}
	broker := r.kafka.Brokers()[0]
	for topic, partitions := range map[string]int{
		"k8s.prod.configmaps": 2, "k8s.prod.gears.example.com": 1, "k8s.prod.eu.deployments.apps": 1, "k8s.prod.notes": 1, "mine.x": 1,
	} {
		r.kafka.CreateTopic(t, topic, kafka.Topic{Partitions: partitions})
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, m := range []struct {
		topic, resource, name string
		partition             int32
		second                int
	}{
		{"k8s.prod.configmaps", "configmaps", "a", 0, 1}, {"k8s.prod.configmaps", "configmaps", "d", 0, 4},
		{"k8s.prod.configmaps", "configmaps", "b", 1, 2}, {"k8s.prod.configmaps", "configmaps", "f", 1, 6},
		{"k8s.prod.gears.example.com", "gears.example.com", "c", 0, 3}, {"mine.x", "pods", "e", 0, 5},
		{"k8s.prod.eu.deployments.apps", "deployments.apps", "stranger", 0, 2}, {"k8s.prod.notes", "", "note", 0, 2},
	} {
		record := &kgo.Record{
			Topic: m.topic, Partition: m.partition, Timestamp: begin.Add(time.Duration(m.second) * time.Second), Key: []byte("shop/" + m.name),
			Value: fmt.Appendf(nil, `{"kind":"Some","apiVersion":"v1","metadata":{"namespace":"shop","name":%q}}`, m.name),
		}
		if m.resource != "" {
			id := fmt.Sprintf("0b6f3c1e/%s/shop/%s/u-%s/%d/updated", m.resource, m.name, m.name, m.second)
			record.Headers = []kgo.RecordHeader{{Key: "kubecdc-id", Value: []byte(id)}}
		}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	r.configure("config.yaml", "  - '*'\n  - pods", fmt.Sprintf("  - {name: lake, kafka: {brokers: [%q], topics: {pods: 'mine.{namespace}'}}}", broker))
	url := "kafka://" + broker + "?topic=k8s.prod.{resource}"
	for want, args := range map[string][]string{
		"a b c d e f": {"-f", r.path("config.yaml")},
		"a b c d f":   {"--sink", url},
		"c":           {"--sink", url, "--resources", "gears.example.com"},
	} {
		args = append(args, "--kubeconfig", r.path("none"), "--since", "start", "--follow=false", "-o", "json")
		o := r.run(append([]string{"tail"}, args...)...)
		var names []string
		for line := range strings.Lines(o.Stdout) {
			var l struct{ Name string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Errorf("%v in %s", err, line)
			}
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want || o.Code != 0 {
			t.Errorf("%q shows %q, code %d %s; want %q", args, got, o.Code, o.Stderr, want)
		}
	}
}
