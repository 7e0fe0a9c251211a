package config

import (
	"cmp"
	"slices"
	"strings"
	"time"
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

// HA is how several exporters share one task: one leads, and the others stand by.
type HA struct {
	Lease    string   `key:"lease" like:"lease"`
	Duration Duration `key:"duration" default:"10s" min:"2s"`
}

// check checks what several exporters need that share a task.
func (h *HA) check(k *checker, stateLog *StateLog, sinks []Sink) {
	k.problemIf(stateLog == nil, "ha",
		"needs state.log: a standby goes on from there; name the sink whose broker is to have the log, such as state: {log: {sink: bus}}")
	for i, s := range sinks {
		k.problemIf(s.File != nil, item("sinks", i)+".file",
			"sink %q cannot be used with ha: a file keeps no second exporter out, so one that wakes up late would write into it, "+
				"and another host does not have it; use a sink in kafka or nats, or leave out ha", shorten(s.Name))
	}
	// A shorter one, which the tag refuses, would end with each slow answer of the API server.
	if d := time.Duration(h.Duration); d > 10*time.Minute || d%time.Second != 0 {
		k.problem("ha.duration", "%s is not possible; want whole seconds, from 2s to 10m", h.Duration)
	}
}

// isNamespaced says whether the text is the namespace and the name of an object.
func isNamespaced(text string) bool {
	namespace, name, _ := strings.Cut(text, "/")
	return CheckNamespace(namespace) == nil && len(namespace) <= 63 && isSubdomain(name)
}

// isSubdomain is RFC 1123's, as the API server has it.
func isSubdomain(name string) bool {
	wrong := func(label string) bool {
		return !consistsOf(label, lower+digits+"-") || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-")
	}
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), wrong)
}

// StateLog is where the saved state also goes.
type StateLog struct {
	Sink string `key:"sink" need:"the name of a sink in kafka or nats"`
	Name string `key:"name" like:"log" default:"kubecdc-state-{cluster}"`
}

// check checks where the saved state is to go.
func (l *StateLog) check(k *checker, sinks []Sink) {
	at := slices.IndexFunc(sinks, func(s Sink) bool { return s.Name != "" && s.Name == l.Sink })
	switch {
	case l.Sink == "": // which is missing
	case at < 0:
		k.problem("state.log.sink", "there is no sink %q; name one of the sinks in kafka or nats", shorten(l.Sink))
	case sinks[at].File != nil:
		k.problem("state.log.sink", "sink %q writes to a file, which is lost with the directory, and which keeps no second exporter out; name a sink in kafka or nats", l.Sink)
	}
}
