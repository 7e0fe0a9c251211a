package people

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestI4WhatWouldRotIsRefusedOrToldOf: of a configuration with which a table, a stream or a state would be wrong some
// day, check and the start say so. They refuse it, or warn where the exporter cannot know what is meant.
func TestI4WhatWouldRotIsRefusedOrToldOf(t *testing.T) {
	r := newRig(t, "rotting")
	r.startNATS()
	r.kafka = brokers.Get(t)
	js := natsserver.Connect(t, r.nats)
	compacted := map[string]string{"cleanup.policy": "compact"}
	forgetful := map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "604800000"}
	topic := func(name string, topic kafka.Topic) func() { return func() { r.kafka.CreateTopic(t, name, topic) } }
	stream := func(config jetstream.StreamConfig) func() {
		return func() {
			config.Subjects = []string{config.Name + ".>"}
			if _, err := js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		}
	}
	const kafkaSink, two = "  - {name: s, %skafka: {brokers: [%q], %s}}", "configmaps serviceaccounts"
	of := func(more, settings string) string {
		return fmt.Sprintf(kafkaSink, more, r.kafka.Brokers()[0], settings)
	}
	bus := func(name string) string {
		return fmt.Sprintf("  - {name: s, nats: {url: %q, stream: %s, subject: '%[2]s.{resource}.{namespace}.{name}'}}", r.nats, name)
	}
	for name, c := range map[string]struct {
		before                 func()
		resources, sink, state string
		want                   string
		warns                  bool
	}{
		"two resources of one table":        {nil, two, of("", "topic: both, cleanup: compact"), "", "topic both is a table, and objects of configmaps and serviceaccounts have the same keys", false},
		"two resources as bare objects":     {nil, two, of("format: object, ", "topic: bare"), "", "topic bare is a table", false},
		"a table of versions":               {topic("versions.v1", kafka.Topic{Config: compacted}), "configmaps", of("", "topic: 'versions.{version}'"), "", "{version} in the template", false},
		"records in the log of the state":   {nil, "configmaps", of("", "topic: saved"), "log: {sink: s, name: saved}, ", "is the log of the state", false},
		"signals in the log of the state":   {nil, "configmaps", of("", "topic: apart, signals: {topic: asked}"), "log: {sink: s, name: asked}, ", "is the topic of the signals", false},
		"a table that forgets":              {nil, "configmaps", of("", "topic: forgets, cleanup: 'compact,delete', retention: 168h"), "", "forgets objects that do not change", true},
		"a table that forgets, made before": {topic("forgot", kafka.Topic{Config: forgetful}), "configmaps", of("", "topic: forgot"), "", "forgets objects that do not change", true},
		"a topic with other partitions":     {topic("narrow", kafka.Topic{Partitions: 1}), "configmaps", of("", "topic: narrow, partitions: 3"), "", "has 1 partitions, and 3 are configured", true},
		"a topic that is no table":          {topic("log", kafka.Topic{}), "configmaps", of("", "topic: log, cleanup: compact"), "", "has cleanup.policy delete, and compact is configured", true},
		"a stream that renames":             {stream(jetstream.StreamConfig{Name: "MOVED", SubjectTransform: &jetstream.SubjectTransformConfig{Source: "MOVED.>", Destination: "other.>"}}), "configmaps", bus("MOVED"), "", "subject_transform", false},
		"a stream that marks deletes":       {stream(jetstream.StreamConfig{Name: "MARKED", MaxAge: time.Hour, SubjectDeleteMarkerTTL: time.Minute, AllowMsgTTL: true, AllowRollup: true}), "configmaps", bus("MARKED"), "", "subject_delete_marker_ttl", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t, r.dir = t, t.TempDir()
			if c.before != nil {
				c.before()
			}
			var resources []string
			for resource := range strings.FieldsSeq(c.resources) {
				resources = append(resources, r.resource(resource, ""))
			}
			r.write("config.yaml", fmt.Sprintf("cluster: rotting\nresources:\n%s\nsinks:\n%s\nstate: {%sdir: %q}\nlisten: 127.0.0.1:0\n",
				strings.Join(resources, "\n"), c.sink, c.state, r.path("state")))
			kubeconfig := shared.Get(t).Kubeconfig()
			o := r.run("check", "-f", r.path("config.yaml"), "--kubeconfig", kubeconfig)
			if said := o.Stdout + o.Stderr; (o.Code == 0) != c.warns || !strings.Contains(said, c.want) {
				t.Errorf("check ends with code %d, want %q:\n%s", o.Code, c.want, said)
			}
			r.launch()
			eventually(t, "the exporter has ended or is ready", func() bool { return !r.exporter.Running() || r.exporter.Ready() })
			if said := r.exporter.Said(); r.exporter.Running() != c.warns || !strings.Contains(said, c.want) {
				t.Errorf("the exporter runs: %t, want %q:\n%s", r.exporter.Running(), c.want, said)
			}
		})
	}
}
