package config

import (
	"slices"
	"strings"
	"testing"
)

// TestLabelsAreFoundInAllTemplates: one in a template of some resource is one of the sink.
func TestLabelsAreFoundInAllTemplates(t *testing.T) {
	label, plain := "a.{label:app}", "a"
	own := func(template string) map[string]string { return map[string]string{"pods": template} }
	for _, c := range []struct {
		sink Sink
		want bool
	}{
		{Sink{Kafka: &Kafka{Topic: label}}, true},
		{Sink{Kafka: &Kafka{Topic: plain, Topics: own(label)}}, true},
		{Sink{Kafka: &Kafka{Topic: plain, Topics: own(plain)}}, false},
		{Sink{NATS: &NATS{Subject: label}}, true},
		{Sink{NATS: &NATS{Subject: plain, Subjects: own(label)}}, true},
		{Sink{NATS: &NATS{Subject: plain, Subjects: own(plain)}}, false},
		{Sink{File: &File{Path: "/x"}}, false},
	} {
		k := &checker{}
		c.sink.checkFoldable(k, "updates")
		if got := slices.ContainsFunc(k.found, func(p Problem) bool { return strings.Contains(p.Text, "a label can change") }); got != c.want {
			t.Errorf("%s: %v, want %v", c.sink.Kind(), k.found, c.want)
		}
	}
}
