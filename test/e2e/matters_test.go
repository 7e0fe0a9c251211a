package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/test/kafka"
)

// matters is a world in which a node's heart beats, with sinks in JetStream and, where it is here, in Kafka.
type matters struct {
	*rig
	lake  *kafka.Cluster // nil where it is not here
	sinks []*follower
}

func newMatters(t *testing.T) *matters {
	t.Helper()
	m := &matters{rig: newRig(t)}
	m.file = nil
	m.sinks = []*follower{m.stream}
	sinks := fmt.Sprintf("- {name: bus, nats: {url: %q, stream: %s, headers: {own: \"{label:team}\"}}}\n", "nats://"+m.broker.address(), streamName)
	if kafka.Available(t.Context()) == nil || kafka.Required() {
		m.lake = kafka.Start(t, kafka.Options{})
		of := kafkaSink{name: lakeName, prefix: "all", delivery: "idempotent", more: `, key: "{resource}/{name}", headers: {own: "{label:team}"}`}
		sinks += strings.Replace(of.config(m.lake), ", digest: true", "", 1) // of what is ignored the log has not all
		m.sinks = append(m.sinks, followTopics(m.lake, of, []string{"nodes"}))
	}
	m.configured("resources:\n- {resource: nodes, ignore: [heartbeats], before: true, changes: true, actor: true}\nsinks:\n" + sinks)
	return m
}

// beat changes the node's status: when it was heard of last, and whether it is ready.
func (m *matters) beat(at int, ready string) (version string) {
	m.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":"2026-11-21T10:00:%02dZ"}]}}`, ready, at)
	nodes := m.client.Resource(core("nodes"))
	node, err := nodes.Patch(m.t.Context(), "beats", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	if err != nil {
		m.t.Fatal(err)
	}
	return node.GetResourceVersion()
}

// everywhere returns when the record of the node is in each sink.
func (m *matters) everywhere(op, version string) {
	m.t.Helper()
	for _, sink := range m.sinks {
		sink.await(m.t, m.exporter, op+" "+version, func(e *event) bool {
			return e.Name == "beats" && e.op() == op && (version == "" || e.ResourceVersion == version)
		})
	}
}

// says holds what the record says beside the object: who changed it and what, and the header and key that are
// configured.
func (m *matters) says(sink *follower, e *event) {
	m.t.Helper()
	if e.own != "a" || e.seat != nil && e.seat.key != "nodes/beats" {
		m.t.Errorf("sink %s: %s has the header %q, and is at %+v", sink.name, e, e.own, e.seat)
	}
	who := strings.Contains(e.Actor, `"manager":"kubelet","operation":"Update","subresource":"status"`)
	what := strings.Contains(e.Changed, `"/status/conditions`) && !strings.Contains(e.Changed, "resourceVersion")
	if updated := e.op() == "updated"; who != updated || what != updated || (e.Actor != "") != (e.op() != "deleted") {
		m.t.Errorf("sink %s: %s says that %s has changed %s", sink.name, e, e.Actor, e.Changed)
	}
}

// TestI2I4OnlyWhatMattersArrives on JetStream and on Kafka, though the exporter is killed between heartbeats: every
// change that matters, once, with all that was ignored before it. In one of its lives a bookmark moves the position
// before that, which takes a minute; in the others what was ignored is read again.
func TestI2I4OnlyWhatMattersArrives(t *testing.T) {
	m := newMatters(t)
	m.exporter.start(t)
	for _, sink := range m.sinks {
		sink.awaitEnd(t, m.exporter, "nodes", "initial")
	}
	m.create(core("nodes"), "", coreObject("Node", "beats", map[string]any{"team": "a"}))
	want := []string{"added"}
	for round, ready := range []string{"True", "False", "True"} {
		matters := m.beat(10*round, ready)
		want = append(want, "updated "+matters)
		m.everywhere("updated", matters)
		ignored := m.exporter.metric(t, `kubecdc_source_ignored_total{resource="nodes"}`)
		for beat := range 3 {
			last := m.beat(10*round+beat+1, ready)
			if beat == 2 && round == 1 {
				eventually(t, deliveryLimit, "the position passes what is ignored", func() bool { return change.CompareVersions(m.exporter.status(t, "nodes").ResourceVersion, last) >= 0 })
			}
		}
		eventually(t, deliveryLimit, "3 updates are counted as ignored", func() bool {
			return m.exporter.metric(t, `kubecdc_source_ignored_total{resource="nodes"}`)-ignored == 3
		})
		m.exporter.process.Kill()
		m.exporter.start(t)
	}
	if err := m.client.Resource(core("nodes")).Delete(t.Context(), "beats", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	m.everywhere("deleted", "")
	m.exporter.stop(t)
	for _, sink := range m.sinks {
		var told []string
		for _, e := range sink.all(t) {
			if e.Name != "beats" {
				continue
			}
			m.says(sink, &e)
			line := e.op()
			if line == "updated" {
				line += " " + e.ResourceVersion
			}
			if told = append(told, line); e.op() == "deleted" && !strings.Contains(string(e.Data), "10:00:23Z") {
				t.Errorf("sink %s: the delete has not the last state: %s", sink.name, e.Data)
			}
		}
		if got, want := strings.Join(told, ", "), strings.Join(append(want, "deleted"), ", "); got != want {
			t.Errorf("sink %s was told\n%s\nwant\n%s", sink.name, got, want)
		}
	}
}
