package config

import (
	"testing"
)

// eachTask looks at the configuration of each task, by its name, and holds what it writes to against what is wanted.
func eachTask(t *testing.T, cfg *Config, placesOf func(name string, one *Config) map[string]string) {
	t.Helper()
	must(t, cfg.Validate())
	for _, task := range cfg.AllTasks() {
		name, one := task.Name(), cfg.Of(task)
		if err := one.Validate(); err != nil {
			t.Error(err)
		}
		for have, want := range placesOf(name, one) {
			if have != want {
				t.Errorf("task %s writes to %q, want %q", name, have, want)
			}
		}
	}
}

// TestEachClusterHasItsOwnPlaces in all that is written.
func TestEachClusterHasItsOwnPlaces(t *testing.T) {
	cfg := parse(t, `
clusters:
- {name: a, kubeconfig: /a}
- {name: b, kubeconfig: /b, context: admin}
resources: [pods]
sinks:
- {name: lake, kafka: {brokers: ['h:1'], delivery: transactional, transactionalId: 'kubecdc-{cluster}'}}
- {name: bucket, nats: {url: 'nats://h', kv: 'K8S-{cluster}'}, deadLetter: {dir: '/letters/{cluster}'}}
state: {dir: /state, log: {sink: lake}}
ha: {lease: 'kubecdc/fleet-{cluster}'}
`)
	eachTask(t, cfg, func(name string, one *Config) map[string]string {
		return map[string]string{
			one.Cluster: name, one.State.Dir: "/state/" + name, one.HA.Lease: "kubecdc/fleet-" + name,
			one.Sinks[0].Kafka.TransactionalID: "kubecdc-" + name, one.Sinks[1].NATS.KV: "K8S-" + name,
			one.Sinks[1].DeadLetter.Dir: "/letters/" + name,
		}
	})
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
	owned := map[string]int{}
	eachTask(t, parse(t, tasksOf), func(name string, one *Config) map[string]string {
		lease, log := "kubecdc/prod."+name, "kubecdc-state-{cluster}_"+name
		if name == "1" {
			lease, log = "kubecdc/prod", "kubecdc-state-{cluster}"
		}
		for i, resource := range []string{"pods", "events", "nodes", "deployments.apps"} {
			if one.Resources[i].IsOurs(resource) {
				owned[resource]++
			}
		}
		if have := one.Resources[1].IsOurs("events"); have != (name == "3") {
			t.Errorf("task %s has events: %v", name, have)
		}
		return map[string]string{
			one.State.Dir: "/state/" + name, one.HA.Lease: lease, one.State.Log.Name: log,
			one.Sinks[1].NATS.Stream: "K8S_{cluster}_" + name, one.Sinks[0].Kafka.Signals.Topic: "ask-" + name,
			one.Sinks[1].NATS.Subject: "k8s.{cluster}." + name + ".{resource}.{namespace}.{name}",
		}
	})
	for _, resource := range []string{"pods", "events", "nodes", "deployments.apps"} {
		if owned[resource] != 1 {
			t.Errorf("%s is of %d tasks", resource, owned[resource])
		}
	}
}
