package config

import (
	"slices"
	"strings"
	"time"
)

// HA is how several exporters share one task: one leads, and the others stand by.
type HA struct {
	Lease    string   `key:"lease"`
	Duration Duration `key:"duration" default:"10s" min:"2s"`
}

// The bounds of HA.Duration. A shorter one would end with each slow answer of the API server.
const (
	minLease = Duration(2 * time.Second)
	maxLease = Duration(10 * time.Minute)
)

// check checks what several exporters need that share a task.
func (h *HA) check(k *checker, stateLog *StateLog, sinks []Sink) {
	if stateLog == nil {
		k.problem("ha", "needs state.log: a standby goes on from there; name the sink whose broker is to have the log, such as state: {log: {sink: bus}}")
	}
	for i, s := range sinks {
		switch {
		case s.File != nil:
			k.problem(item("sinks", i)+".file", "sink %q cannot be used with ha: a file keeps no second exporter out, so one that wakes up late would write "+
				"into it, and another host does not have it; use a sink in kafka or nats, or leave out ha", shorten(s.Name))
		case s.NATS != nil && s.NATS.Shared:
			k.problem(item("sinks", i)+".nats.shared", "sink %q cannot be used with ha: a stream that others write to keeps no second exporter out; "+
				"give it a stream of its own, or leave out ha", shorten(s.Name))
		}
	}
	if d := time.Duration(h.Duration); d > time.Duration(maxLease) || d%time.Second != 0 {
		k.problem("ha.duration", "%s is not possible; want whole seconds, from %s to %s", h.Duration, minLease, maxLease)
	}
	if h.Lease != "" && !isLease(h.Lease) {
		k.problem("ha.lease", "%q is no Lease; want namespace/name, such as kubecdc/prod-eu1: a namespace of at most 63 lower case letters, digits and -, "+
			"and a name of at most 253, also with dots", shorten(h.Lease))
	}
}

// isLease says whether the text is namespace/name as the API server takes them.
func isLease(text string) bool {
	namespace, name, found := strings.Cut(text, "/")
	return found && CheckNamespace(namespace) == nil && len(namespace) <= 63 && isSubdomain(name)
}

// isSubdomain is RFC 1123's, as the API server has it.
func isSubdomain(name string) bool {
	wrong := func(label string) bool {
		return !consistsOf(label, lower+digits+"-") || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-")
	}
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), wrong)
}
