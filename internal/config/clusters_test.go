package config

import "testing"

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
	for i := range cfg.Clusters {
		name := cfg.Clusters[i].Name
		one := cfg.Of(&cfg.Clusters[i])
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
