package kafka

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4ATopicThatIsNotAsConfiguredIsToldOf, and a table that loses objects by their age.
func TestI4ATopicThatIsNotAsConfiguredIsToldOf(t *testing.T) {
	const week = "604800000"
	known := wire.Topic{Name: "t", Partitions: []wire.Partition{{Replicas: []int32{1}}, {Replicas: []int32{1}}}}
	for name, c := range map[string]struct {
		options Options
		values  map[string]string
		want    string
	}{
		"as configured":             {Options{Partitions: 2, Replication: 1, Cleanup: "delete,compact"}, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1"}, ""},
		"nothing is told":           {Options{Cleanup: "compact"}, nil, ""},
		"nothing is configured":     {Options{}, map[string]string{"cleanup.policy": "compact", "retention.ms": week}, ""},
		"a number in other letters": {Options{Configs: map[string]string{"min.cleanable.dirty.ratio": "0.30"}}, map[string]string{"min.cleanable.dirty.ratio": "0.3"}, ""},
		"partitions":                {Options{Partitions: 3}, nil, "has 2 partitions, and 3 are configured"},
		"replicas":                  {Options{Replication: 3}, nil, "has 1 replicas, and 3 are configured"},
		"cleanup":                   {Options{Cleanup: "delete"}, map[string]string{"cleanup.policy": "compact"}, "has cleanup.policy compact, and delete is configured"},
		"retention":                 {Options{Retention: time.Hour}, map[string]string{"retention.ms": week}, "has retention.ms 604800000, and 3600000 is configured"},
		"more":                      {Options{Configs: map[string]string{"min.insync.replicas": "2"}}, map[string]string{"min.insync.replicas": "1"}, "has min.insync.replicas 1, and 2 is configured"},
		"a table by age":            {Options{}, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": week}, "forgets objects that do not change, after 168h0m0s"},
		"a table by size":           {Options{}, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "7"}, "after more than 7 bytes"},
		"a resync before that":      {Options{Resync: 24 * time.Hour}, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": week}, ""},
		"a resync that is too late": {Options{Resync: 120 * time.Hour}, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": week}, "after 168h0m0s"},
	} {
		got := c.options.misfits(known, wire.Settings{Values: c.values})
		if len(got) > 0 != (c.want != "") || !strings.Contains(strings.Join(got, ";"), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	made := Options{Cleanup: "compact,delete", Retention: time.Hour}
	if got := made.forgets(made.spec("t").Configs); len(got) != 1 || !strings.Contains(got[0], "after 1h0m0s") {
		t.Errorf("a topic that is to be made: %q", got)
	}
}

// TestI4WhatATopicMustNotHoldIsRefused: records of data's choice become dead letters, and what is configured ends the
// sink, in check, too. A topic that differs is told of once.
func TestI4WhatATopicMustNotHoldIsRefused(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	ours := options.Topics[0]
	state, table, signals := ours+"-state", ours+"-table", ours+"-signals"
	cluster.CreateTopic(t, ours, kafkatest.Topic{Partitions: 1})
	cluster.CreateTopic(t, table, kafkatest.Topic{Config: map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "604800000"}})
	log := newTestSink(t, Options{
		Wire: options.Wire, Topics: []string{state}, Create: true, Partitions: 1, Cleanup: "compact", Whole: true, Delivery: Transactional, TransactionalID: state,
	})
	open(t, log, "")
	saved := message(state, "0", "part-1")
	saved.Op = sink.OpState
	mustWrite(t, log, []sink.Message{saved})

	var told []string
	options.Warn = func(text string) { told = append(told, text) }
	options.Judge = judgeOf(false)
	options.Uncompacted = func(topic string) string {
		if topic == table {
			return "a label can change"
		}
		return ""
	}
	options.Reserved = func(topic string) string {
		if topic == signals {
			return "the topic of the signals"
		}
		return ""
	}
	s := opened(t, options)
	for topic, why := range map[string]string{state: "the saved state of an exporter", table: "the topic is compacted, and a label can change", signals: "the topic of the signals"} {
		rejects(t, s, ours, topic, why)
		configured := options
		configured.Topics = []string{topic}
		_, err := answeredCheck(t, configured)
		expectRefusal(t, "check of "+topic, err, why)
	}
	if exists(t, cluster, signals) {
		t.Error("a topic of signals was made for records")
	}
	mark := mustWrite(t, s, nil)
	open(t, s, mark)
	expectTold(t, told, "topic "+ours+" has 1 partitions, and 2 are configured")
	if note, err := answeredCheck(t, options); err != nil || !strings.Contains(note, "has 1 partitions") {
		t.Errorf("check: %q, %v", note, err)
	}
	options.Topics, options.Uncompacted = []string{table}, nil
	if note, err := answeredCheck(t, options); err != nil || !strings.Contains(note, "forgets objects that do not change, after") {
		t.Errorf("check of a table that forgets: %q, %v", note, err)
	}
	options.Topics, options.Cleanup = []string{ours + "-new"}, "compact,delete"
	if note, err := answeredCheck(t, options); err != nil || !strings.Contains(note, "after the broker's retention") || slices.Contains(told, note) {
		t.Errorf("check of a topic that is to be made: %q, %v", note, err)
	}
}
