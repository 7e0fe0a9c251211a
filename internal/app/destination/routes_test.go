package destination

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
)

func core(name, kind string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: name, Kind: kind}}
}

// crossroads is a cluster of which a wildcard and a name select something.
func crossroads() *cluster.Cluster {
	c := &cluster.Cluster{Name: "c"}
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{
		{Stream: core("pods", "Pod"), Names: []string{"po", "*"}},
		{Stream: core("services", "Service"), Names: []string{"*"}},
		{Stream: core("nodes", "Node"), Names: []string{"nodes"}},
	}})
	return c
}

func TestResourcesGoToTopicsOfTheirOwn(t *testing.T) {
	s := &config.Sink{Name: "lake", Kafka: &config.Kafka{
		Topic: "all", Topics: map[string]string{"po": "pods.{label:app}", "*": "wild.{resource}"},
	}}
	c := crossroads()
	routes, err := kafkaRoutes(s, c)
	must(t, err)
	rec := &change.Record{Op: change.Added, Object: []byte(`{"metadata":{"labels":{"app":"web"}}}`)}
	for i, want := range []string{"pods.web", "wild.services", "all"} {
		if rec.Stream = &c.Streams()[i].Stream; string(routes.Append(nil, rec)) != want {
			t.Errorf("%s goes to %s, want %s", rec.Stream, routes.Append(nil, rec), want)
		}
	}
	topics, found := topicsOf(c, s, routes)
	if want := []string{"all", "pods.-", "wild.services"}; !slices.Equal(topics, want) {
		t.Errorf("topics that are known beforehand are %q, want %q", topics, want)
	}
	if want := []string{"wild.services"}; !slices.Equal(found, want) {
		t.Errorf("of topics, %q are what a wildcard found, want %q", found, want)
	}
}

// TestStreamsThatJoinHaveRoutesOfTheirOwn by the templates of wildcards; one that is over keeps them for what is still
// on disk.
func TestStreamsThatJoinHaveRoutesOfTheirOwn(t *testing.T) {
	gears := change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "gears", Kind: "Gear"}}
	c := crossroads()
	start := c.Chosen.Load()
	topics, err := kafkaRoutes(&config.Sink{Kafka: &config.Kafka{Topic: "all", Topics: map[string]string{"*.example.com": "own.{resource}"}}}, c)
	must(t, err)
	subjects, taken, err := natsRoutes(&config.NATS{Subject: "k8s.{resource}", Subjects: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil || !slices.Equal(taken, []string{"k8s.*", "own.*"}) {
		t.Errorf("the stream is to take %q (%v), and takes what joins later", taken, err)
	}
	rec := &change.Record{Stream: &c.Streams()[0].Stream, Op: change.Added}
	if got := string(topics.Append(nil, rec)); got != "all" {
		t.Errorf("before it joins, pods go to %s", got)
	}
	joined := &selection.Choice{Streams: append(slices.Clone(start.Streams), selection.Selected{Stream: gears, Names: []string{"*.example.com"}})}
	for step, chosen := range map[string]*selection.Choice{"joined": joined, "over": start} {
		c.Chosen.Store(chosen)
		for stream, want := range map[*change.Stream][2]string{&gears: {"own.gears.example.com", "own.gears"}, &start.Streams[0].Stream: {"all", "k8s.pods"}} {
			rec := &change.Record{Stream: stream, Op: change.Added}
			if topic, subject := string(topics.Append(nil, rec)), string(subjects.Append(nil, rec)); topic != want[0] || subject != want[1] {
				t.Errorf("%s: %s goes to topic %s and subject %s, want %s and %s", step, stream, topic, subject, want[0], want[1])
			}
		}
	}
}

// TestI6WhoMakesObjectsMakesNoNumberOfTopics: labels and names are theirs to choose, namespaces are not.
func TestI6WhoMakesObjectsMakesNoNumberOfTopics(t *testing.T) {
	for topics, want := range map[string]int{
		"{topic: 'k8s.{resource}', labelTopics: 7}":                                                     0,
		"{topic: 'k8s.{resource}.{namespace}.{version}', labelTopics: 7}":                               0,
		"{topic: 'k8s.{label:app}', labelTopics: 7}":                                                    7,
		"{topic: 'k8s.{resource}.{name}', labelTopics: 7}":                                              7,
		"{topic: 'k8s.{resource}', topics: {po: 'pods.{name}'}, labelTopics: 7}":                        7,
		"{topic: 'k8s.{name}', labelTopics: 7, cleanup: compact, key: '{resource}/{namespace}/{name}'}": 7,
	} {
		text := "cluster: c\nresources: [po, nodes]\nsinks: [{name: lake, kafka: " + strings.Replace(topics, "{", "{brokers: ['a:1'], ", 1) + "}]\n"
		cfg, err := config.Parse("c.yaml", []byte(text), os.LookupEnv)
		must(t, err)
		s, c := &cfg.Sinks[0], crossroads()
		routes, err := kafkaRoutes(s, c)
		must(t, err)
		if got := kafkaOptions(&table{sink: s, cluster: c, routes: routes}, Nop{}).LabelTopics; got != want {
			t.Errorf("%s: at most %d topics, want %d", topics, got, want)
		}
	}
}

func TestResourcesHaveSubjectsOfTheirOwn(t *testing.T) {
	n := &config.NATS{Subject: "k8s.{resource}.{name}", Subjects: map[string]string{"po": "pods.{label:app}", "nodes": "k8s.nodes.{name}"}}
	routes, subjects, err := natsRoutes(n, crossroads())
	if err != nil || !slices.Equal(subjects, []string{"k8s.*.*", "pods.*"}) {
		t.Errorf("the stream is to take %q (%v)", subjects, err)
	}
	pods := core("pods", "Pod")
	if got := string(routes.Append(nil, &change.Record{Stream: &pods, Op: change.Deleted})); got != "pods.-" {
		t.Errorf("a delete goes to %s", got)
	}
}

// TestSubjectsOfSeveralObjectsAreKnown: a stream that keeps the newest messages of a subject would lose some of them.
func TestSubjectsOfSeveralObjectsAreKnown(t *testing.T) {
	c := crossroads()
	c.Streams()[1].Names = []string{"services"}
	c.Streams()[2].Stream.Resource.ClusterScoped = true
	for subject, want := range map[string]string{
		"k8s.{resource}.{namespace}.{name}": "",
		"k8s.{namespace}.{name}":            "subject k8s.a.a would be that of several objects",
		"k8s.{resource}.{namespace}":        "subject k8s.pods.a would",
		"k8s.{resource}.{name}":             "subject k8s.pods.a would",
		"k8s.all":                           "subject k8s.all would",
		// Object c of namespace a-b, and object b-c of namespace a.
		"k8s.{resource}.{namespace}-{name}":              "{namespace} and {name} are in one token",
		"k8s.{resource}.{namespace}{name}":               "{namespace} and {name} are in one token",
		"k8s.{resource}-{cluster}-{name}.{namespace}":    "{resource} and {name} are in one token",
		"k8s.{resource}/{namespace}/{cluster}-{name}":    "",
		"k8s.{resource}.{namespace}.{name}.{version}":    "{version} can change",
		"k8s.{resource}.{label:team}.{namespace}.{name}": "{label:team} can change",
	} {
		s := &config.Sink{Name: "bus", NATS: &config.NATS{Subject: subject, Subjects: map[string]string{"nodes": "nodes.{name}"}}}
		routes, _, err := natsRoutes(s.NATS, c)
		must(t, err)
		if got := crowded(s, c, routes); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", subject, got, want)
		}
	}
}

// TestSubjectsOfWhatMayComeAreKnown: what a wildcard stands for later pushes nothing out that was there before.
func TestSubjectsOfWhatMayComeAreKnown(t *testing.T) {
	c := crossroads()
	for i := range c.Streams() {
		c.Streams()[i].Names = []string{"*"}
	}
	for subject, want := range map[string]string{
		"{group}.{resource}.{namespace}.{name}": "",
		"{kind}.{namespace}.{name}.{group}":     "",
		"{resource}.{namespace}.{name}":         "a resource that comes later may have the same",
	} {
		s := &config.Sink{Name: "bus", NATS: &config.NATS{Subject: subject}}
		routes, _, err := natsRoutes(s.NATS, c)
		must(t, err)
		if got := crowded(s, c, routes); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", subject, got, want)
		}
	}
}
