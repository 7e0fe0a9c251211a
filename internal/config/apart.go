package config

import (
	"cmp"
	"strings"
)

// role is a topic that is for something else than records.
type role struct {
	name, what, path string
	kind             string // those of one kind may be one
}

// roles are the topics of signals, and of the log of the state.
func roles(sinks []Sink, log *StateLog) (all []role) {
	for i := range sinks {
		s := &sinks[i]
		if s.Kafka == nil {
			continue
		}
		path := item("sinks", i) + ".kafka.signals"
		if signals := s.Kafka.Signals; signals != nil {
			all = append(all, role{signals.Topic, "the topic of the signals of sink " + s.Name, path + ".topic", "signals"})
			if signals.Notifications != "" {
				all = append(all, role{signals.Notifications, "the topic of the notifications of sink " + s.Name, path + ".notifications", "notifications"})
			}
		}
		if log != nil && s.Name == log.Sink {
			all = append(all, role{log.Name, "the log of the state", "state.log.name", ""})
		}
	}
	return all
}

// reserve tells each sink in Kafka which topics are for something else.
func reserve(sinks []Sink, log *StateLog) {
	reserved := map[string]string{}
	for _, r := range roles(sinks, log) {
		reserved[r.name] = r.what
	}
	for i := range sinks {
		if to := sinks[i].Kafka; to != nil {
			to.Reserved = reserved
		}
	}
}

// checkApart keeps signals, notifications and the log of the state apart, whichever sinks they go with: brokers are
// rarely named in one way.
func checkApart(k *checker, sinks []Sink, log *StateLog, cluster string) {
	var before []role
	for _, r := range roles(sinks, log) {
		name := strings.ReplaceAll(r.name, "{cluster}", cmp.Or(cluster, "{cluster}"))
		for _, other := range before {
			if other.name == name && (r.kind == "" || r.kind != other.kind) && r.path != other.path {
				k.problem(r.path, "%q is %s; choose another name", shorten(r.name), other.what)
				break
			}
		}
		r.name = name
		before = append(before, r)
	}
	if log == nil {
		return
	}
	for i := range sinks {
		if to := sinks[i].NATS; to != nil && (to.KV == log.Name || to.Stream == "KV_"+log.Name) {
			k.problem("state.log.name", "%q is where the records of %s go; choose another name", shorten(log.Name), item("sinks", i))
		}
	}
}
