package people

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestI4ATablesOldKeysEndOrAreFound: of a table whose keys change, a consumer who knows nothing but the topic has what
// the cluster has once --accept-new-keys was given; and verify says of a topic with old keys beside new ones, which
// became a table later, what consumers would take for an object more.
func TestI4ATablesOldKeysEndOrAreFound(t *testing.T) {
	r := newRig(t, "rekeyed")
	r.kafka = brokers.Get(t)
	settings, err := json.Marshal(kafka.CompactedQuickly())
	if err != nil {
		t.Fatal(err)
	}
	topics := strings.NewReplacer(`"cleanup.policy":"compact",`, "")
	configure := func(name, format string) {
		r.configure(name, r.resource("configmaps", ""), fmt.Sprintf(
			`  - {name: table, format: %s, kafka: {brokers: [%q], topic: "table.{cluster}", partitions: 3, cleanup: compact, topicConfig: %s}}
  - {name: log, format: %s, kafka: {brokers: [%q], topic: "log.{cluster}", cleanup: delete}}`,
			format, r.kafka.Brokers()[0], topics.Replace(string(settings)), format, r.kafka.Brokers()[0]))
	}
	configure("config.yaml", "cloudevents")
	for i := range 20 {
		r.put(fmt.Sprint("map-", i), "x")
	}
	r.start()
	r.put("map-1", "y")
	r.remove("map-2")
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	r.stop()
	r.put("map-3", "z")
	r.remove("map-4")

	configure("config.yaml", "debezium")
	if o := r.run("check", "-f", r.path("config.yaml")); o.Code == 0 || !strings.Contains(o.Stdout+o.Stderr, "--accept-new-keys") {
		t.Errorf("check ends with code %d: %s%s", o.Code, o.Stdout, o.Stderr)
	}
	r.start("--accept-new-keys")
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	r.stop()
	r.start() // the new keys are not new any more
	r.put("map-5", "z")
	r.equal("verify", "-f", r.path("config.yaml"), "--timeout", "1m")
	r.stop()
	if got, want := r.rows(t, r.kafka.AwaitCompaction(t, "table.rekeyed")), r.versions(t); !maps.Equal(got, want) {
		t.Errorf("a consumer of the table has %v\nand the cluster %v", got, want)
	}

	r.kafka.AlterTopicConfig(t, "log.rekeyed", map[string]string{"cleanup.policy": "compact"})
	o := r.run("verify", "-f", r.path("config.yaml"), "-o", "json")
	v := o.verdicts(t)
	if o.Code != 1 || !v["table"].Equal || v["log"].Equal {
		t.Errorf("verify ends with code %d, says of the table %t, and of the topic with keys of both formats %t", o.Code, v["table"].Equal, v["log"].Equal)
	}
	if s := v["log"].Streams[0]; s.Extra != 3 || s.Missing+s.Stale > 0 {
		t.Errorf("of 3 old keys verify tells %+v", s)
	}
	o = r.run("verify", "-f", r.path("config.yaml"), "--sink", "log")
	if !strings.Contains(o.Stdout, `in topic log.rekeyed partition 0 key "rekeyed/map-4"`) {
		t.Errorf("verify does not name the old keys:\n%s", o.Stdout)
	}
}

// rows are the versions by key of what a table holds.
func (r *rig) rows(t *testing.T, records []kafka.Record) map[string]string {
	found := map[string]string{}
	for _, record := range records {
		var row struct {
			After struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal(record.Value, &row); err != nil {
			t.Fatalf("%v in %s", err, record.Value)
		}
		if strings.HasPrefix(string(record.Key), "{") && row.After.Metadata.Name == "" {
			continue // it speaks of no object
		}
		found[string(record.Key)] = row.After.Metadata.ResourceVersion
	}
	return found
}

// versions are those of the cluster's config maps by the keys of Debezium's format.
func (r *rig) versions(t *testing.T) map[string]string {
	list, err := r.client.CoreV1().ConfigMaps(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, m := range slices.All(list.Items) {
		want[fmt.Sprintf(`{"namespace":%q,"name":%q}`, m.Namespace, m.Name)] = m.ResourceVersion
	}
	return want
}
