package config

import (
	"slices"
	"testing"
)

// TestEachDestinationListsItsTemplates: what is checked of all templates knows no kinds of sinks.
func TestEachDestinationListsItsTemplates(t *testing.T) {
	for _, c := range []struct {
		sink Sink
		want []string
	}{
		{Sink{Kafka: &Kafka{Topic: "all", Topics: map[string]string{"pods": "own"}}}, []string{"all", "own"}},
		{Sink{NATS: &NATS{Subject: "all", Subjects: map[string]string{"pods": "own"}}}, []string{"all", "own"}},
		{Sink{File: &File{Path: "/x"}}, nil},
		{Sink{}, nil},
	} {
		got := c.sink.templates()
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.sink.Kind(), got, c.want)
		}
	}
}
