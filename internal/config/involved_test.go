package config

import "testing"

// A sink may cut what it is told, and need not take what is not kept.
func TestI9EventsThatTellNothingNewAreTaken(t *testing.T) {
	for _, sink := range []string{
		"drop: [.spec]", "only: [.metadata.name]", "redact: [.metadata.labels]", "ops: [updated, added]", "updates: whole",
		"resources: [events.events.k8s.io, pods]", "resources: [pods]", "resources: [nodes], filter: 'true'",
	} {
		text := "resources:\n- {resource: pods, ignore: [.status]}\n- {resource: events.events.k8s.io, involved: [ownerReferences, labels]}\n- nodes\n"
		if _, err := Parse("c.yaml", []byte(text+"sinks: [{file: {path: /f}, "+sink+"}]\n"), testEnv); err != nil {
			t.Errorf("%s: %v", sink, err)
		}
	}
}

func TestNamesOfEvents(t *testing.T) {
	for name, want := range map[string]bool{
		"events": true, "ev": true, "event": true, "events.events.k8s.io": true, "events.v1.events.k8s.io": true, "ev.events.k8s.io": true,
		"events.k8s.io": false, "events.eventing.knative.dev": false, "pods": false, "*": false, "*.events.k8s.io": false, "": false,
	} {
		if isEvents(name) != want {
			t.Errorf("%q stands for events: %t", name, !want)
		}
	}
}
