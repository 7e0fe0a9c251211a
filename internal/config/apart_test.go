package config

import (
	"strings"
	"testing"
)

// TestI4TopicsOfOtherPurposesAreApart: signals, notifications, the log of the state and records, of whatever sinks.
func TestI4TopicsOfOtherPurposesAreApart(t *testing.T) {
	const lake, bus = "{name: lake, kafka: {brokers: [a:1], ", "{name: bus, kafka: {brokers: [b:1], "
	for name, c := range map[string]struct{ file, want string }{
		"apart": {"sinks: [" + lake + "signals: {}}}, " + bus + "signals: {notifications: out}}}]\nstate: {log: {sink: lake}}\n", ""},
		"signals and the log of the state": {"cluster: dev\nsinks: [" + lake + "signals: {topic: kubecdc-state-dev}}}]\nstate: {log: {sink: lake}}\n",
			`state.log.name (line 4): "kubecdc-state-{cluster}" is the topic of the signals of sink lake; choose another name`},
		"notifications and another sink's signals": {"sinks: [" + lake + "signals: {topic: s}}}, " + bus + "signals: {notifications: s}}}]\n",
			`sinks[1].kafka.signals.notifications (line 2): "s" is the topic of the signals of sink lake; choose another name`},
		"records and the log of the state": {"sinks: [" + lake + "topic: all}}]\nstate: {log: {sink: lake, name: all}}\n",
			`sinks[0].kafka.topic (line 2): "all" is the log of the state, and records would destroy that; choose another topic`},
		"a resource's records and another sink's signals": {"sinks: [" + lake + "topics: {pods: s}}}, " + bus + "signals: {topic: s}}}]\n",
			`sinks[0].kafka.topics.pods (line 2): "s" is the topic of the signals of sink bus, and records would destroy that; choose another topic`},
		"a bucket and the log of the state": {"sinks: [{name: kv, nats: {url: 'nats://h', kv: all}}]\nstate: {log: {sink: kv, name: all}}\n",
			`state.log.name (line 3): "all" is where the records of sinks[0] go; choose another name`},
	} {
		expectProblem(t, name, "resources: [pods]\n"+c.file, c.want)
	}
}

// TestI4ATableHasAKeyForEachObject: in a compacted topic nothing that can change chooses it, and nothing that a
// wildcard may yet stand for shares it, which the format object has without compaction, too.
func TestI4ATableHasAKeyForEachObject(t *testing.T) {
	for name, c := range map[string]struct{ kafka, want string }{
		"each resource has a topic":     {"cleanup: compact", ""},
		"the key has the resource":      {"cleanup: compact, topic: all, key: '{resource}/{namespace}/{name}'", ""},
		"a log":                         {"topic: all", ""},
		"the version":                   {"cleanup: compact, topic: '{resource}.{version}'", "sinks[0].kafka.topic (line 2): the version can change"},
		"a wildcard in one topic":       {"cleanup: compact, topic: all", `sinks[0].kafka.topic (line 2): resources of "*" would share topics and keys`},
		"a wildcard in one topic, bare": {"topic: all}, format: object, queue: {", `sinks[0].kafka.topic (line 2): resources of "*" would share topics and keys`},
		"kinds of all groups":           {"cleanup: compact, topic: '{kind}'", `sinks[0].kafka.topic (line 2): resources of "*" would share topics and keys`},
		"a wildcard in one of its own":  {"cleanup: compact, topics: {'*': all}", `sinks[0].kafka.topics."*" (line 2): resources of "*" would share topics and keys`},
		"a wildcard that is not taken":  {"cleanup: compact, topic: all}, resources: [pods], queue: {", ""},
		"kinds of one group":            {"cleanup: compact, topic: 'k8s.{group}'", `sinks[0].kafka.topic (line 2): resources of "*" would share topics and keys`},
		"groups and kinds":              {"cleanup: compact, topic: 'k8s.{group}.{kind}'", ""},
		"kind d-e of c, and e of c-d":   {"cleanup: compact, topic: 'k8s.{group}-{kind}'", `sinks[0].kafka.topic (line 2): resources of "*" would share topics and keys`},
		"the group, and the kind's key": {"cleanup: compact, topic: 'k8s.{group}', key: '{kind}/{namespace}/{name}'", ""},
		"what is named has a topic that is later another's": {"cleanup: compact, topic: 'k8s.{cluster}.{resource}', topics: {pods: 'k8s.{cluster}.gears.example.com'}",
			`sinks[0].kafka.topics.pods (line 2): resources that "*" may yet stand for would go there, too`},
		"it is another's, by group and kind": {"cleanup: compact, topic: 'k8s.{group}.{kind}', topics: {pods: 'k8s.example.com.Gear'}",
			`sinks[0].kafka.topics.pods (line 2): resources that "*" may yet stand for would go there, too`},
		"what is named has a topic of its own": {"cleanup: compact, topic: 'k8s.{resource}', topics: {pods: 'k8s.all-pods'}", ""},
		"or one of a group that is built in":   {"cleanup: compact, topic: 'k8s.{resource}', topics: {pods: 'k8s.core.pods'}", ""},
	} {
		expectProblem(t, name, "resources: ['*', pods]\nsinks: [{name: s, kafka: {brokers: [a:1], "+c.kafka+"}}]\n", c.want)
	}
}

// expectProblem: the file has one problem, "" is none.
func expectProblem(t *testing.T, name, file, want string) {
	t.Helper()
	loaded, err := Parse("c.yaml", []byte(file), testEnv)
	if err == nil {
		err = loaded.Validate()
	}
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %v\nwant %s", name, err, want)
	}
}
