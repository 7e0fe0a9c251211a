package destination

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
)

// TestI4ResourcesOfOneTableHaveKeysOfTheirOwn: ConfigMap x/x's tombstone would delete ServiceAccount x/x.
func TestI4ResourcesOfOneTableHaveKeysOfTheirOwn(t *testing.T) {
	nodes := core("nodes", "Node")
	nodes.Resource.ClusterScoped = true
	gear := core("gears", "Gear")
	gear.Resource.Group = "example.com"
	c := &cluster.Cluster{Name: "c"}
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{
		{Stream: core("pods", "Pod"), Names: []string{"pods"}}, {Stream: core("gears", "Gear"), Names: []string{"gears"}},
		{Stream: gear, Names: []string{"gears.example.com"}}, {Stream: nodes, Names: []string{"nodes"}},
	}})
	for name, test := range map[string]struct{ kafka, want string }{
		"each has a topic":               {"cleanup: compact", ""},
		"a log":                          {"topic: all", ""},
		"one topic":                      {"topic: all, cleanup: compact", "topic all is a table, and objects of pods and gears have the same keys"},
		"one topic, by topicConfig":      {"topic: all, topicConfig: {cleanup.policy: compact}", "objects of pods and gears"},
		"one topic, bare objects":        {"topic: all}, format: object, queue: {", "objects of pods and gears"},
		"a topic of the namespace, bare": {"topic: 'k8s.{namespace}'}, format: object, queue: {", "topic k8s.- is a table, and objects of pods and gears"},
		"two of four have one topic":     {"topics: {pods: x, gears: x}, cleanup: compact", "topic x is a table, and objects of pods and gears"},
		"kinds of two groups":            {"topic: '{kind}', cleanup: compact", "topic Gear is a table, and objects of gears and gears.example.com"},
		"kinds with their groups":        {"topic: '{group}.{kind}', cleanup: compact", ""},
		"only one is namespaced":         {"topic: all, cleanup: compact}, resources: [pods, nodes], queue: {", ""},
		"the key has the resource":       {"topic: all, cleanup: compact, key: '{resource}/{namespace}/{name}'", ""},
		"the key has the kind":           {"topic: all, cleanup: compact, key: '{kind}/{namespace}/{name}'", "objects of gears and gears.example.com"},
	} {
		text := "cluster: c\nresources: [pods, gears, gears.example.com, nodes]\nsinks: [{name: s, kafka: {brokers: ['h:1'], " + test.kafka + "}}]\n"
		cfg, err := config.Parse("c.yaml", []byte(text), os.LookupEnv)
		must(t, err)
		_, err = Build(&cfg.Sinks[0], c, Outlet{Told: Nop{}})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (err == nil || !usage.Is(err) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v\nwant %s", name, err, test.want)
		}
	}
}

// TestI4ATopicThatIsCompactedKeepsNoLabels, whatever is configured of topics that are made.
func TestI4ATopicThatIsCompactedKeepsNoLabels(t *testing.T) {
	c := crossroads()
	for kafka, wants := range map[string]map[string]string{
		"topic: 'k8s.{label:team}'":               {"k8s.red": "{label:team} in the template", "k8s.-": "{label:team} in the template", "other": ""},
		"topic: '{resource}.{version}'":           {"pods.v1": "{version} in the template", "pods.v2": ""},
		"topics: {nodes: 'n.{label:a}'}":          {"k8s.c.pods": "", "n.x": "{label:a} in the template"},
		"topic: all":                              {"all": "objects of pods and services"},
		"topic: '{namespace}', key: '{resource}'": {"x": "is that of several objects"},
	} {
		cfg, err := config.Parse("c.yaml", []byte("cluster: c\nresources: ['*', po, nodes]\nsinks: [{name: s, kafka: {brokers: ['h:1'], "+kafka+"}}]\n"), os.LookupEnv)
		must(t, err)
		routes, err := kafkaRoutes(&cfg.Sinks[0], c)
		must(t, err)
		for topic, want := range wants {
			if got := (&table{&cfg.Sinks[0], c, routes, nil}).misfit(topic); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s: topic %s: %q, want %q", kafka, topic, got, want)
			}
		}
	}
}

// TestI4FramesHaveTopicsThatAreKnownBeforeTheFirst: as the format's readers need it, or as is said. A crash leaves none
// of them unread.
func TestI4FramesHaveTopicsThatAreKnownBeforeTheFirst(t *testing.T) {
	c := crossroads()
	for text, aside := range map[string]bool{
		"format: cloudevents, kafka: {": false, "format: cloudevents, kafka: {frames: topic, ": true,
		"format: debezium, kafka: {": true, "format: debezium, kafka: {frames: inline, ": false,
		"format: object, kafka: {": true, "format: cloudevents-binary, kafka: {": false,
	} {
		cfg, err := config.Parse("c.yaml", []byte("cluster: c\nresources: ['*', po, nodes]\nsinks: [{name: s, "+text+"topic: '{resource}', brokers: ['h:1']}}]\n"), os.LookupEnv)
		must(t, err)
		routes, err := kafkaRoutes(&cfg.Sinks[0], c)
		must(t, err)
		options := kafkaOptions(&table{&cfg.Sinks[0], c, routes, nil}, Nop{})
		for _, want := range []string{"pods", "nodes"} {
			if !slices.Contains(options.Topics, want) || slices.Contains(options.Topics, want+"_frames") != aside {
				t.Errorf("%s: the topics are %q", text, options.Topics)
			}
			if aside != (options.Ordered != nil) || aside && (options.Ordered(want) || !options.Ordered(want+"_frames")) {
				t.Errorf("%s: other topics than %s_frames are made with one partition", text, want)
			}
		}
	}
}
