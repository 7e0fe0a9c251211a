package config

import (
	"strings"
	"testing"
)

// TestHASaysWhatItNeeds: each mistake has a message that names the setting.
func TestHASaysWhatItNeeds(t *testing.T) {
	const bus = "sinks: [{name: bus, nats: {url: \"nats://n:4222\"}}]\n"
	const log = "state: {log: {sink: bus}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"right":        {bus + log + "ha: {lease: kubecdc/prod-eu1.a, duration: 2s}\n", ""},
		"defaults":     {bus + log + "ha: {}\n", ""},
		"no log":       {bus + "ha: {}\n", "ha (line 3): needs state.log"},
		"file":         {"sinks: [{name: bus, nats: {url: \"nats://n:4222\"}}, {name: out, file: {path: x}}]\n" + log + "ha: {}\n", `sinks[1].file (line 2): sink "out" cannot be used with ha: a file keeps no second exporter out`},
		"shared":       {"sinks: [{name: bus, nats: {url: \"nats://n:4222\", shared: true}}]\n" + log + "ha: {}\n", `sinks[0].nats.shared (line 2): sink "bus" cannot be used with ha`},
		"too short":    {bus + log + "ha: {duration: 1s}\n", "ha.duration (line 4): want a length of time of at least 2s"},
		"too long":     {bus + log + "ha: {duration: 11m}\n", "ha.duration (line 4): 11m is not possible; want whole seconds, from 2s to 10m"},
		"in parts":     {bus + log + "ha: {duration: 2500ms}\n", "ha.duration (line 4): 2.5s is not possible; want whole seconds"},
		"no namespace": {bus + log + "ha: {lease: prod}\n", `ha.lease (line 4): "prod" is no Lease; want namespace/name`},
		"upper case":   {bus + log + "ha: {lease: kubecdc/Prod}\n", `ha.lease (line 4): "kubecdc/Prod" is no Lease`},
		"very long":    {bus + log + "ha: {lease: kubecdc/" + strings.Repeat("x", 5000) + "}\n", "ha.lease (line 4): "},
	} {
		expectProblem(t, name, "resources: [pods]\n"+c.text, c.want)
	}
}
