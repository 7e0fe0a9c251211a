package config

import (
	"testing"
)

// TestEachClusterHasItsOwnPlaces in all that is written.
func TestEachClusterHasItsOwnPlaces(t *testing.T) {
	cfg, err := Parse("c.yaml", []byte(`
clusters:
- {name: a, kubeconfig: /a}
- {name: b, kubeconfig: /b, context: admin}
resources: [pods]
sinks:
- {name: lake, kafka: {brokers: ['h:1'], delivery: transactional, transactionalId: 'kubecdc-{cluster}'}}
- {name: bucket, nats: {url: 'nats://h', kv: 'K8S-{cluster}'}, deadLetter: {dir: '/letters/{cluster}'}}
state: {dir: /state, log: {sink: lake}}
ha: {lease: 'kubecdc/fleet-{cluster}'}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, task := range cfg.AllTasks() {
		name, one := task.Name(), cfg.Of(task)
		if err := one.Validate(); err != nil {
			t.Error(err)
		}
		for what, have := range map[string][2]string{
			"cluster": {one.Cluster, name}, "state": {one.State.Dir, "/state/" + name}, "lease": {one.HA.Lease, "kubecdc/fleet-" + name},
			"id": {one.Sinks[0].Kafka.TransactionalID, "kubecdc-" + name}, "bucket": {one.Sinks[1].NATS.KV, "K8S-" + name},
			"letters": {one.Sinks[1].DeadLetter.Dir, "/letters/" + name},
		} {
			if have[0] != have[1] {
				t.Errorf("cluster %s: %s is %q, want %q", name, what, have[0], have[1])
			}
		}
	}
	if cfg.Sinks[1].NATS.KV != "K8S-{cluster}" || cfg.HA.Lease != "kubecdc/fleet-{cluster}" {
		t.Error("one cluster's configuration is that of all")
	}
}

const tasksOf = `
tasks: 3
resources: [pods, {resource: events, task: 3}, nodes, '*.apps']
sinks:
- {name: lake, kafka: {brokers: ['h:1'], signals: {topic: 'ask-{task}'}}}
- {name: bus, nats: {url: 'nats://h', stream: 'K8S_{cluster}_{task}', subject: 'k8s.{cluster}.{task}.{resource}.{namespace}.{name}'}}
state: {dir: /state, log: {sink: lake}}
ha: {lease: kubecdc/prod}
redactKey: k
`

// TestEachTaskHasItsOwnPlacesAndResources, and every resource is of one of them. The first one has what an exporter
// without others has.
func TestEachTaskHasItsOwnPlacesAndResources(t *testing.T) {
	cfg, err := Parse("c.yaml", []byte(tasksOf), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	owned := map[string]int{}
	for _, task := range cfg.AllTasks() {
		name, one := task.Name(), cfg.Of(task)
		if err := one.Validate(); err != nil {
			t.Error(err)
		}
		lease, log := "kubecdc/prod."+name, "kubecdc-state-{cluster}_"+name
		if name == "1" {
			lease, log = "kubecdc/prod", "kubecdc-state-{cluster}"
		}
		for what, have := range map[string][2]string{
			"state": {one.State.Dir, "/state/" + name}, "lease": {one.HA.Lease, lease}, "log": {one.State.Log.Name, log},
			"stream": {one.Sinks[1].NATS.Stream, "K8S_{cluster}_" + name}, "signals": {one.Sinks[0].Kafka.Signals.Topic, "ask-" + name},
			"subject": {one.Sinks[1].NATS.Subject, "k8s.{cluster}." + name + ".{resource}.{namespace}.{name}"},
		} {
			if have[0] != have[1] {
				t.Errorf("task %s: %s is %q, want %q", name, what, have[0], have[1])
			}
		}
		for i, resource := range []string{"pods", "events", "nodes", "deployments.apps"} {
			if one.Resources[i].IsOurs(resource) {
				owned[resource]++
			}
		}
		if have := one.Resources[1].IsOurs("events"); have != (name == "3") {
			t.Errorf("task %s has events: %v", name, have)
		}
	}
	for _, resource := range []string{"pods", "events", "nodes", "deployments.apps"} {
		if owned[resource] != 1 {
			t.Errorf("%s is of %d tasks", resource, owned[resource])
		}
	}
}
