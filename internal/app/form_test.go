package app

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// TestI9FormsAreFoundByNames: a record on disk may be of another version than the one that is streamed now, of a
// resource that is not served any more, or of one that is not configured.
func TestI9FormsAreFoundByNames(t *testing.T) {
	cfg := &config.Config{Resources: []config.Resource{
		{Name: "widgets.example.com", Redact: config.Redaction{Paths: []string{".spec.token"}}}, {Name: "*.example.com", Drop: []string{".spec"}}, {Name: "secrets"},
	}}
	stream := func(group, version, name string) *change.Stream {
		return &change.Stream{Resource: change.Resource{Group: group, Version: version, Name: name, Kind: "Kind"}}
	}
	c := new(cluster.Cluster)
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{{Stream: *stream("example.com", "v2", "widgets"), Names: []string{"wd"}, Configured: &cfg.Resources[0]}}})
	f := newForms(c, cfg, transform.Key{Secret: []byte("key")})
	reshaped := func(s *change.Stream, object string) (string, error) {
		rec := &change.Record{Stream: s, Op: change.Updated, Object: []byte(object)}
		err := f.reshapeFor("", rec)
		return string(rec.Object), err
	}
	for _, s := range []*change.Stream{stream("example.com", "v1", "widgets"), stream("example.com", "v2", "widgets")} {
		if got, err := reshaped(s, `{"spec":{"token":"t"}}`); err != nil || !strings.Contains(got, `{"token":"hmac-sha256:`) || f.ofSink("")(s) == "" {
			t.Errorf("%s: %s, %v", s.Resource.Version, got, err)
		}
	}
	if got, err := reshaped(stream("example.com", "v1", "gears"), `{"spec":1,"metadata":{"managedFields":[],"name":"n"}}`); err != nil || got != `{"metadata":{"name":"n"}}` {
		t.Errorf("by a wildcard: %s, %v", got, err)
	}
	if got, err := reshaped(stream("", "v1", "secrets"), `{"data":{"a":"b"},"metadata":{"annotations":{"x":"y"}}}`); err != nil || strings.Count(got, "hmac-sha256:") != 2 {
		t.Errorf("a Secret: %s, %v", got, err)
	}
	cfg.Resources = cfg.Resources[:2]
	if got, err := reshaped(stream("", "v1", "secrets"), `{"data":{"a":"b"}}`); err != nil || strings.Count(got, "hmac-sha256:") != 1 || f.ofSink("")(stream("", "v1", "secrets")) != "" {
		t.Errorf("a Secret that is not configured any more: %s, %v", got, err)
	}
}

// TestI9ALetterOfASinkHasTheFormOfThatSink, also one that was kept before the sink had rules of its own; what waits for
// any sink has that of the resource.
func TestI9ALetterOfASinkHasTheFormOfThatSink(t *testing.T) {
	cfg := &config.Config{
		Resources: []config.Resource{{Name: "configmaps"}},
		Sinks:     []config.Sink{{Name: "open"}, {Name: "narrow", Redact: []string{".data"}}},
	}
	c := new(cluster.Cluster)
	resource := change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}
	stream := &change.Stream{Resource: resource}
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{{Stream: *stream, Names: []string{"configmaps"}, Configured: &cfg.Resources[0]}}})
	f := newForms(c, cfg, transform.Key{Secret: []byte("key")})
	encode := func(rec *change.Record) ([]sink.Message, error) {
		return []sink.Message{{Value: append(rec.Object, rec.Before...)}}, nil
	}
	if f.ofSink("open")(stream) != f.ofSink("")(stream) || f.ofSink("narrow")(stream) == f.ofSink("")(stream) {
		t.Error("the sinks' forms are not those of their rules")
	}
	for _, name := range []string{"open", "narrow"} {
		l := &deadletter.Letter{
			Sink: name, Resource: "configmaps", Version: "v1", Op: "updated", Form: f.ofSink("")(stream),
			Value: []byte("s3cr3t"), Object: []byte(`{"data":{"a":"s3cr3t"}}`), Before: []byte(`{"data":{"a":"s3cr3t"}}`),
		}
		f.reshapeLetter(l, "", encode)
		all := string(l.Value) + string(l.Object) + string(l.Before)
		if strings.Contains(all, "s3cr3t") != (name == "open") || l.Form != f.ofSink(name)(stream) {
			t.Errorf("%s: the letter is %s, of form %s", name, all, l.Form)
		}
	}
}

// TestI9ALetterThatCannotBeShapedSaysNothing but what it was about.
func TestI9ALetterThatCannotBeShapedSaysNothing(t *testing.T) {
	cfg := &config.Config{Resources: []config.Resource{{Name: "configmaps", Redact: config.Redaction{Paths: []string{".data"}}}}}
	c := new(cluster.Cluster)
	c.Chosen.Store(&selection.Choice{})
	f := newForms(c, cfg, transform.Key{Secret: []byte("key")})
	encode := func(rec *change.Record) ([]sink.Message, error) {
		return []sink.Message{{Value: append([]byte("of "), rec.Object...)}}, nil
	}
	letter := func(object string) *deadletter.Letter {
		l := &deadletter.Letter{Resource: "configmaps", Version: "v1", Op: "updated", Value: []byte("s3cr3t"), Object: []byte(object)}
		f.reshapeLetter(l, "", encode)
		return l
	}
	if l := letter(`{"data":{"a":"s3cr3t"}}`); strings.Contains(string(l.Value)+string(l.Object), "s3cr3t") || !strings.HasPrefix(string(l.Value), `of {"data":{"a":"hmac`) || l.Form == "" {
		t.Errorf("the letter is %s, %s", l.Value, l.Object)
	}
	if l := letter(`{"data":"s3cr3t"`); l.Value != nil || l.Object != nil || !strings.Contains(l.Error, "withheld") || strings.Contains(l.Error, "s3cr3t") {
		t.Errorf("the letter is %+v, %s", l, l.Object)
	}
}
