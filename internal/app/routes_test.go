package app

import (
	"bytes"
	"slices"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/selection"
)

func core(name, kind string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: name, Kind: kind}}
}

// routed is a cluster of which a wildcard and a name select something.
func routed() *cluster {
	c := &cluster{name: "c"}
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
	c := routed()
	routes, err := kafkaRoutes(s.Kafka, c)
	if err != nil {
		t.Fatal(err)
	}
	rec := &change.Record{Op: change.Added, Object: []byte(`{"metadata":{"labels":{"app":"web"}}}`)}
	for i, want := range []string{"pods.web", "wild.services", "all"} {
		if rec.Stream = &c.Streams()[i].Stream; routes.Of(rec) != want {
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
	start := c.Chosen.Load()
	topics, err := kafkaRoutes(&config.Kafka{Topic: "all", Topics: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil {
		t.Fatal(err)
	}
	subjects, taken, err := natsRoutes(&config.NATS{Subject: "k8s.{resource}", Subjects: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil || !slices.Equal(taken, []string{"k8s.*", "own.*"}) {
		t.Errorf("the stream is to take %q (%v), and takes what joins later", taken, err)
	}
	rec := &change.Record{Stream: &c.Streams()[0].Stream, Op: change.Added}
	if got := topics.Of(rec); got != "all" {
		t.Errorf("before it joins, pods go to %s", got)
	}
	joined := &selection.Choice{Streams: append(slices.Clone(start.Streams), selection.Selected{Stream: gears, Names: []string{"*.example.com"}})}
	for step, chosen := range map[string]*selection.Choice{"joined": joined, "over": start} {
		c.Chosen.Store(chosen)
		for stream, want := range map[*change.Stream][2]string{&gears: {"own.gears.example.com", "own.gears"}, &start.Streams[0].Stream: {"all", "k8s.pods"}} {
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
		form, err := selection.FormOf(&selection.Selected{Stream: secrets, Configured: &r}, []byte(key))
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
	if err := selection.CheckShape(r); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.Before = true
	if err := selection.CheckShape(r); err != nil {
		t.Error(err)
	}
}
