package app

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
)

func core(name, kind string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: name, Kind: kind}}
}

// routed is a cluster of which a wildcard and a name select something.
func routed() *cluster {
	c := &cluster{name: "c"}
	c.chosen.Store(&choice{streams: []selected{
		{stream: core("pods", "Pod"), names: []string{"po", "*"}},
		{stream: core("services", "Service"), names: []string{"*"}},
		{stream: core("nodes", "Node"), names: []string{"nodes"}},
	}})
	return c
}

func TestResourcesGoToTopicsOfTheirOwn(t *testing.T) {
	s := &config.Sink{Name: "lake", Kafka: &config.Kafka{
		Topic: "all", Topics: map[string]string{"po": "pods.{label:app}", "*": "wild.{resource}"},
	}}
	c := routed()
	routes, err := kafkaRoutes(s.Kafka, c)
	if err != nil {
		t.Fatal(err)
	}
	rec := &change.Record{Op: change.Added, Object: []byte(`{"metadata":{"labels":{"app":"web"}}}`)}
	for i, want := range []string{"pods.web", "wild.services", "all"} {
		if rec.Stream = &c.streams()[i].stream; routes.Of(rec) != want {
			t.Errorf("%s goes to %s, want %s", rec.Stream, routes.Of(rec), want)
		}
	}
	if got, want := c.topicsOf(s, routes), []string{"all", "pods.-", "wild.services"}; !slices.Equal(got, want) {
		t.Errorf("topics that are known beforehand are %q, want %q", got, want)
	}
	s.Kafka.Topics["po"] = "a b"
	if _, err := kafkaRoutes(s.Kafka, c); err == nil {
		t.Error("a topic with a space is taken")
	}
}

// TestStreamsThatJoinHaveRoutesOfTheirOwn by the templates of wildcards; one that is over keeps them for what is still
// on disk.
func TestStreamsThatJoinHaveRoutesOfTheirOwn(t *testing.T) {
	gears := change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "gears", Kind: "Gear"}}
	c := routed()
	start := c.chosen.Load()
	topics, err := kafkaRoutes(&config.Kafka{Topic: "all", Topics: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil {
		t.Fatal(err)
	}
	subjects, taken, err := natsRoutes(&config.NATS{Subject: "k8s.{resource}", Subjects: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil || !slices.Equal(taken, []string{"k8s.*", "own.*"}) {
		t.Errorf("the stream is to take %q (%v), and takes what joins later", taken, err)
	}
	rec := &change.Record{Stream: &c.streams()[0].stream, Op: change.Added}
	if got := topics.Of(rec); got != "all" {
		t.Errorf("before it joins, pods go to %s", got)
	}
	joined := &choice{streams: append(slices.Clone(start.streams), selected{stream: gears, names: []string{"*.example.com"}})}
	for step, chosen := range map[string]*choice{"joined": joined, "over": start} {
		c.chosen.Store(chosen)
		for stream, want := range map[*change.Stream][2]string{&gears: {"own.gears.example.com", "own.gears"}, &start.streams[0].stream: {"all", "k8s.pods"}} {
			rec := &change.Record{Stream: stream, Op: change.Added}
			if topic, subject := topics.Of(rec), string(subjects.Append(nil, rec)); topic != want[0] || subject != want[1] {
				t.Errorf("%s: %s goes to topic %s and subject %s, want %s and %s", step, stream, topic, subject, want[0], want[1])
			}
		}
	}
}

func TestResourcesHaveSubjectsOfTheirOwn(t *testing.T) {
	n := &config.NATS{Subject: "k8s.{resource}.{name}", Subjects: map[string]string{"po": "pods.{label:app}", "nodes": "k8s.nodes.{name}"}}
	routes, subjects, err := natsRoutes(n, routed())
	if err != nil || !slices.Equal(subjects, []string{"k8s.*.*", "pods.*"}) {
		t.Errorf("the stream is to take %q (%v)", subjects, err)
	}
	pods := core("pods", "Pod")
	if got := string(routes.Append(nil, &change.Record{Stream: &pods, Op: change.Deleted})); got != "pods.-" {
		t.Errorf("a delete goes to %s", got)
	}
}

// TestI9ChangedRulesAreAnotherForm, so that what was kept before them is forgotten.
func TestI9ChangedRulesAreAnotherForm(t *testing.T) {
	secrets := core("secrets", "Secret")
	form := func(r config.Resource, key string) []byte {
		form, err := formOf(&selected{stream: secrets, configured: &r}, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return form
	}
	if form(config.Resource{}, "k") != nil {
		t.Error("there is a form although nothing is kept")
	}
	same := form(config.Resource{Before: true}, "k")
	if len(same) == 0 || !bytes.Equal(same, form(config.Resource{Before: true, Filter: "true", Ops: []string{"added"}}, "k")) {
		t.Error("what changes no object changes the form")
	}
	for name, other := range map[string][]byte{
		"no redaction": form(config.Resource{Before: true, Redact: config.Redaction{None: true}}, "k"),
		"a path":       form(config.Resource{Before: true, Redact: config.Redaction{Paths: []string{".x"}}}, "k"),
		"a cut":        form(config.Resource{Before: true, Drop: []string{".x"}}, "k"),
		"a field":      form(config.Resource{Before: true, Only: []string{".x"}}, "k"),
		"a variable":   form(config.Resource{Before: true, RedactEnv: []string{"X"}}, "k"),
		"a kept field": form(config.Resource{Before: true, Keep: []string{config.KeepLastApplied}}, "k"),
		"another key":  form(config.Resource{Before: true}, "l"),
	} {
		if bytes.Equal(other, same) {
			t.Errorf("%s leaves the form as it was", name)
		}
	}
	if bytes.Contains(form(config.Resource{Before: true}, "planted-key"), []byte("planted-key")) {
		t.Error("the form has the key in it")
	}
}

func TestOldObjectNeedsBeforeAndTheErrorSaysWhere(t *testing.T) {
	r := &config.Resource{Name: "pods", Filter: "oldObject == null"}
	const want = `resource "pods": compile filter: it uses oldObject, but these objects are not kept: add before: true`
	if err := checkShape(r); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.Before = true
	if err := checkShape(r); err != nil {
		t.Error(err)
	}
}
