package consumers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// awayConfiguration has a sink that needs the registry, and one that does not.
const awayConfiguration = `
cluster: typed
resources: [configmaps, secrets, clusterroles, widgets.example.com]
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: typed, kafka: {brokers: [%[2]q], topic: "debezium.{resource}", partitions: 3, tombstones: true, registry: {url: %[3]q}}, format: debezium}
- {name: plain, file: {path: %[1]s/changes.ndjson}}
`

// TestARegistryThatIsAwayAtTheStartHoldsUpNobody, with E2E_REGISTRY_AWAY=1, since the other sink waits for half a
// minute. Then it has everything, and the sink with the registry ends with what the cluster has when that is there.
func TestARegistryThatIsAwayAtTheStartHoldsUpNobody(t *testing.T) {
	if os.Getenv("E2E_REGISTRY_AWAY") == "" {
		t.Skip("half a minute is waited for a registry: E2E_REGISTRY_AWAY=1 does so")
	}
	s := newTypedStage(t, awayConfiguration)
	s.registry.Stop()
	s.w.populate()
	s.x.start(t)
	has := func(what string) func() error {
		return func() error {
			text, err := os.ReadFile(filepath.Join(s.x.dir, "changes.ndjson"))
			if err == nil && !bytes.Contains(text, []byte(what)) {
				err = fmt.Errorf("the other sink lacks %s\n%s", what, s.x.log())
			}
			return err
		}
	}
	eventually(t, has("map-4"))
	s.w.change()
	s.w.create(configMaps, "default", "later", `{"apiVersion":"v1","kind":"ConfigMap"}`)
	eventually(t, has("later"))
	s.x.process.Kill()
	s.x.start(t) // without a schema, still
	s.w.remove(configMaps, "default", "later")
	if err := s.registry.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.x.settle(t)
	want := s.w.list()
	same(t, newTypedLog(t, s).fold(t, "debezium."), want)
	log, err := os.ReadFile(filepath.Join(s.x.dir, "exporter.log"))
	if err != nil || !strings.Contains(string(log), "sink misses a stream") {
		t.Errorf("the log does not say what the sink misses, %v:\n%s", err, tail(string(log)))
	}
	s.x.stop(t)
	output(t, append([]string{s.x.binary, "verify", "--sink", "typed"}, s.x.config...)...)
}
