package config

import (
	"testing"
)

// TestSignalsOfAMistakeAreNamed.
func TestSignalsOfAMistakeAreNamed(t *testing.T) {
	for signals, want := range map[string]string{
		"true":                         "sinks[0].kafka.signals (line 1): want a mapping with keys of notifications, topic, have true",
		"{topics: a}":                  "sinks[0].kafka.signals.topics (line 1): unknown key; did you mean topic? allowed: notifications, topic",
		"{topic: 'k8s.{resource}'}":    `sinks[0].kafka.signals.topic (line 1): "k8s.{resource}": the only placeholder here is {cluster}`,
		"{topic: 'a b'}":               "sinks[0].kafka.signals.topic (line 1): a topic has letters, digits and any of -_. only",
		"{topic: a, notifications: a}": "sinks[0].kafka.signals.notifications (line 1): \"a\" is the topic of the signals of sink s; choose another name",
		"{notifications: '{cluster'}":  `sinks[0].kafka.signals.notifications (line 1): "{cluster": the only placeholder here is {cluster}`,
		"{notifications: '*'}":         "sinks[0].kafka.signals.notifications (line 1): a topic has letters, digits and any of -_. only",
	} {
		expectProblem(t, signals, "sinks: [{name: s, kafka: {brokers: [a:1], signals: "+signals+"}}]\nresources: [pods]\n", want)
	}
}
