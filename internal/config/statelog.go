package config

import (
	"slices"
	"strings"
)

// StateLog is where the saved state also goes.
type StateLog struct {
	Sink string `key:"sink"`
	Name string `key:"name" default:"kubecdc-state-{cluster}"`
}

// check checks where the saved state is to go.
func (l *StateLog) check(k *checker, sinks []Sink) {
	at := slices.IndexFunc(sinks, func(s Sink) bool { return s.Name != "" && s.Name == l.Sink })
	switch {
	case l.Sink == "":
		k.problem("state.log.sink", "missing; want the name of a sink in kafka or nats")
	case at < 0:
		k.problem("state.log.sink", "there is no sink %q; name one of the sinks in kafka or nats", shorten(l.Sink))
	case sinks[at].File != nil:
		k.problem("state.log.sink", "sink %q writes to a file, which is lost with the directory, and which keeps no second exporter out; name a sink in kafka or nats", l.Sink)
	}
	if name := strings.ReplaceAll(l.Name, "{cluster}", "x"); !consistsOf(name, lower+upper+digits+"-_") {
		k.problem("state.log.name", "%q cannot be a name; want letters, digits, {cluster} and any of -_", shorten(l.Name))
	}
}
