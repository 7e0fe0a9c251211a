package selection

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
)

// pod is what is kept of every Pod.
type pod struct{ asked []string }

func (p *pod) Images(stream *change.Stream, key change.Key) (change.Images, error) {
	p.asked = append(p.asked, stream.String()+" "+key.String())
	return change.Images{{UID: "u", Object: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}}, nil
}

func eventsStream(r *config.Resource) *Selected {
	return &Selected{Stream: change.Stream{Resource: change.Resource{Version: "v1", Name: "events", Kind: "Event"}}, Configured: r}
}

// TestI9OnlyKeptStreamsAreAsked: what is not kept, and not streamed any more, is not told.
func TestI9OnlyKeptStreamsAreAsked(t *testing.T) {
	resources := []config.Resource{{Name: "pods", Before: true}, {Name: "nodes"}}
	var current Current
	current.Chosen.Store(chosenOf(t, resources))
	images := &pod{}
	involve := InvolveOf(eventsStream(&config.Resource{Name: "events", Involved: []string{"labels", "labels"}}), &current, images)
	tell := func(kind, namespace string) string {
		rec := &change.Record{
			Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "events"}}, Op: change.Added, Key: change.Key{Namespace: "default", Name: "e"},
			Object: []byte(`{"involvedObject":{"kind":"` + kind + `","namespace":"` + namespace + `","name":"n","uid":"u"}}`),
		}
		must(t, involve(rec))
		return string(rec.Involved)
	}
	if got := tell("Pod", "default"); got != `{"labels":{"a":"b"}}` || strings.Join(images.asked, ",") != "pods default/n" {
		t.Errorf("of a Pod: %s, asked for %q", got, images.asked)
	}
	if got := tell("Node", ""); got != `{"unknown":"notstreamed"}` {
		t.Errorf("of a Node, which is not kept: %s", got)
	}
	current.Chosen.Store(&Choice{Streams: []Selected{*eventsStream(&config.Resource{Name: "events", Before: true})}})
	if got := tell("Event", "default"); got != `{"unknown":"notstreamed"}` || len(images.asked) != 1 {
		t.Errorf("of an Event: %s", got)
	}
	current.Chosen.Store(&Choice{})
	if got := tell("Pod", "default"); got != `{"unknown":"notstreamed"}` || len(images.asked) != 1 {
		t.Errorf("of a Pod that is not streamed any more: %s", got)
	}
	if InvolveOf(eventsStream(&config.Resource{Name: "events"}), &current, images) != nil {
		t.Error("nothing is asked for, and looked up")
	}
}

// TestI9WhatEventsMayTellIsInTheForms, of what is kept and of Events on disk: an object that is no longer chosen, or is
// cut otherwise, must not come through an Event.
func TestI9WhatEventsMayTellIsInTheForms(t *testing.T) {
	form := func(c *config.Config) (images, events string) {
		made, err := FormOf(&Selected{Configured: &c.Resources[0]}, transform.Key{Secret: []byte("k")}, c)
		must(t, err)
		today, err := shape.NewToday([]shape.Entry{{}}, transform.Key{Secret: []byte("k")})
		must(t, err)
		must(t, AddInvolved(today, eventsStream(&c.Resources[1]), c))
		return string(made), today.Form
	}
	with := func(change func(*config.Config)) (images, events string) {
		c := &config.Config{
			Resources: []config.Resource{{Name: "pods", Before: true}, {Name: "events", Involved: []string{"labels"}}, {Name: "nodes"}},
			Sinks:     []config.Sink{{Name: "lake"}},
		}
		change(c)
		return form(c)
	}
	images, events := with(func(*config.Config) {})
	for what, c := range map[string]struct {
		change         func(*config.Config)
		images, events bool // whether they are others
	}{
		"a selector":           {func(c *config.Config) { c.Resources[0].LabelSelector = "a" }, true, true},
		"a field selector":     {func(c *config.Config) { c.Resources[0].FieldSelector = "a=b" }, true, true},
		"namespaces":           {func(c *config.Config) { c.Resources[0].Namespaces = []string{"a"} }, true, true},
		"other namespaces":     {func(c *config.Config) { c.Resources[0].ExcludeNamespaces = []string{"a"} }, true, true},
		"a filter":             {func(c *config.Config) { c.Resources[0].Filter = "true" }, true, true},
		"operations":           {func(c *config.Config) { c.Resources[0].Ops = []string{"added"} }, true, true},
		"a cut":                {func(c *config.Config) { c.Resources[0].Drop = []string{".metadata.labels"} }, true, true},
		"a hash":               {func(c *config.Config) { c.Resources[0].Redact.Paths = []string{".metadata.labels"} }, true, true},
		"other fields":         {func(c *config.Config) { c.Resources[0].Only = []string{".spec"} }, true, true},
		"another kept one":     {func(c *config.Config) { c.Resources[2].Before = true }, false, true},
		"other metadata":       {func(c *config.Config) { c.Resources[1].Involved = []string{"ownerReferences"} }, false, true},
		"a sink":               {func(c *config.Config) { c.Sinks = append(c.Sinks, config.Sink{Name: "bus"}) }, false, false},
		"not asked for":        {func(c *config.Config) { c.Resources[1].Involved = nil }, true, true},
		"what is of no matter": {func(c *config.Config) { c.Resources[0].Actor, c.Resources[2].Filter = true, "true" }, false, false},
	} {
		i, e := with(c.change)
		if (i != images) != c.images || (e != events) != c.events {
			t.Errorf("%s: the images' form is another one: %t, that of events: %t", what, i != images, e != events)
		}
	}
	filtered := func(c *config.Config) { c.Resources[0].Filter = "true" }
	images, events = with(filtered)
	i, e := with(func(c *config.Config) { filtered(c); c.Sinks = append(c.Sinks, config.Sink{Name: "bus"}) })
	if i == images || e == events {
		t.Error("a sink that was never told what the filter leaves out now may hear of it")
	}
	bare, err := FormOf(&Selected{Configured: &config.Resource{Name: "pods", Before: true}}, transform.Key{Secret: []byte("k")}, &config.Config{})
	if other, err2 := FormOf(&Selected{Configured: &config.Resource{Name: "pods", Before: true, Filter: "true"}}, transform.Key{Secret: []byte("k")}, &config.Config{}); err != nil || err2 != nil || !bytes.Equal(bare, other) {
		t.Error("without involved, a filter makes another form")
	}
}
