package main

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
	if got, want := c.topicsOf(s, routes), []string{"all", "wild.services"}; !slices.Equal(got, want) {
		t.Errorf("topics that are known beforehand are %q, want %q", got, want)
	}
	s.Kafka.Topics["po"] = "a b"
	if _, err := kafkaRoutes(s.Kafka, c); err == nil {
		t.Error("a topic with a space is taken")
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
	const want = `resource "pods": compile filter: it speaks of oldObject, and nothing is kept of these objects: add before: true`
	if err := checkShape(r); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.Before = true
	if err := checkShape(r); err != nil {
		t.Error(err)
	}
}
