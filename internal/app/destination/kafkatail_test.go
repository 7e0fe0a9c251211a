package destination

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/config"
)

// TestATailHoldsWhatItsTemplatesMake, and knows when the brokers cannot tell it from what others write.
func TestATailHoldsWhatItsTemplatesMake(t *testing.T) {
	for _, test := range []struct {
		topic string
		needs [2]bool           // the name of the cluster, and its streams
		holds map[string]string // a topic for each resource
		not   map[string]string
	}{
		{"k8s.{cluster}.{resource}", [2]bool{true, false}, map[string]string{"pods": "k8s.c.pods", "gears.example.com": "k8s.c.gears.example.com"},
			map[string]string{"pods": "k8s.c.eu.pods", "gears.example.com": "k8s.c.gears"}},
		{"k8s.{group}.{label:team}", [2]bool{}, map[string]string{"pods": "k8s.core.red", "gears.example.com": "k8s.example.com.blue"},
			map[string]string{"pods": "k8s.example.com.red"}},
		{"all", [2]bool{}, map[string]string{"pods": "all"}, map[string]string{"pods": "alle"}},
		{"{resource}", [2]bool{false, true}, nil, nil}, {"{namespace}-{kind}", [2]bool{false, true}, nil, nil},
	} {
		k := &config.Kafka{Topic: test.topic}
		if name, streams := kafkaNeeds(&config.Sink{Kafka: k}); [2]bool{name, streams} != test.needs {
			t.Errorf("%s needs the cluster's name: %t, and its streams: %t", test.topic, name, streams)
		}
		tail := &kafkaTail{templates: templatesOf(&config.Sink{Kafka: k}, "c"), known: map[string]bool{}}
		for resource, topic := range test.holds {
			if !tail.holds(topic, resource) || !tail.matching("").MatchString(topic) {
				t.Errorf("%s: %s of %s is left out", test.topic, topic, resource)
			}
		}
		for resource, topic := range test.not {
			if tail.holds(topic, resource) {
				t.Errorf("%s: %s of %s is taken", test.topic, topic, resource)
			}
		}
	}
}
