package people

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// TestI4I9I10WhatUsersSeeOfARunningExporter: whoever reads its sinks, labels objects or asks it sees what was promised,
// one promise after the other, of one exporter with a file, Kafka and JetStream.
func TestI4I9I10WhatUsersSeeOfARunningExporter(t *testing.T) {
	r := newRig(t, "seen")
	r.startNATS()
	r.kafka = brokers.Get(t)
	for _, topic := range []string{"own.configmaps", "own.secrets"} {
		r.kafka.CreateTopic(t, topic, kafka.Topic{})
	}
	r.kafka.CreateTopic(t, "team-table", kafka.Topic{Config: map[string]string{"cleanup.policy": "compact"}})
	lake := fmt.Sprintf("brokers: [%q]", r.kafka.Brokers()[0])
	r.write("config.yaml", fmt.Sprintf(`cluster: seen
discovery: {interval: 1s}
resources:
%s
%s
  - '*.seen.example.com'
sinks:
  - {name: file, file: {path: %q}}
  - {name: own, resources: [secrets, configmaps, '*.seen.example.com'], kafka: {%[4]s, topic: 'own.{resource}', create: false}}
  - {name: teams, resources: [configmaps], kafka: {%[4]s, topic: 'team-{label:team}'}}
  - {name: bus, nats: {url: %[5]q, stream: BUS, service: {}}}
state: {log: {sink: teams, name: team-state}, dir: %[6]q}
listen: 127.0.0.1:0
`, r.resource("configmaps", `, ignore: ["{.metadata.annotations['demo/seen']}"]`), r.resource("secrets", ""), r.path("out.ndjson"), lake, r.nats, r.path("state")))
	r.put("web", "1")
	r.start()
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the first ignored annotation is not told", r.annotates},
		{"equal secrets have hashes of their own", r.hashes},
		{"an object as deep as the API server takes is in the file", r.deepens},
		{"a label leads into no table and no state", r.mislabels},
		{"whoever asks chooses no object's subject for the answer", r.asks},
		{"what a wildcard found keeps no sink shut at the next start", r.restarts},
	} {
		t.Run(step.name, step.run)
	}
}

// told are the lines of the file about the object, once one has the text.
func (r *rig) told(t *testing.T, about, text string) (lines []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the file tells %s of %s", text, about), func() bool {
		content, err := os.ReadFile(r.path("out.ndjson"))
		lines = nil
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, about) {
				lines = append(lines, line)
			}
		}
		return err == nil && slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) })
	})
	return lines
}

func (r *rig) annotates(t *testing.T) {
	r.told(t, "/configmaps/seen//", "snapshot.end") // until then, nothing is ignored
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	for _, patch := range []string{`{"metadata":{"annotations":{"demo/seen":"now"}}}`, `{"data":{"key":"2"}}`} {
		if _, err := maps.Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := r.told(t, "/configmaps/seen/web/", `"key":"2"`); len(lines) != 2 {
		t.Errorf("told are\n%s", strings.Join(lines, ""))
	}
}

func (r *rig) hashes(t *testing.T) {
	var hashes []string
	for _, name := range []string{"mine", "another"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"pin": "1234"}}
		if _, err := r.client.CoreV1().Secrets(r.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		line := r.told(t, "/secrets/seen/"+name+"/", `"pin"`)[0]
		hashes = append(hashes, regexp.MustCompile(`hmac-sha256:\w+`).FindString(line))
	}
	if hashes[0] == "" || hashes[0] == hashes[1] {
		t.Errorf("the hashes are %q", hashes)
	}
}

func (r *rig) deepens(t *testing.T) {
	r.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"gears.seen.example.com"},"spec":{"group":"seen.example.com","scope":"Namespaced","names":{"plural":"gears","kind":"Gear"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`))
	eventually(t, "gears are served", func() bool {
		return r.client.CoreV1().RESTClient().Get().AbsPath("/apis/seen.example.com/v1/gears").Do(t.Context()).Error() == nil
	})
	r.post("/apis/seen.example.com/v1/namespaces/seen/gears", fmt.Appendf(nil,
		`{"apiVersion":"seen.example.com/v1","kind":"Gear","metadata":{"name":"deep"},"x":%s%s}`, strings.Repeat("[", 9_999), strings.Repeat("]", 9_999)))
	r.told(t, "/gears.seen.example.com/seen/deep/", `"x"`)
	if o := r.run("verify", "-f", r.path("config.yaml"), "--sink", "file", "--timeout", "1m"); o.Code != 0 {
		t.Errorf("verify ends with code %d:\n%s%s", o.Code, o.Stdout, o.Stderr)
	}
	o := r.run("tail", "-f", r.path("config.yaml"), "--sink", "file", "--since", "start", "--follow=false", "--resources", "gears.seen.example.com")
	if !strings.Contains(o.Stdout, "deep") {
		t.Errorf("tail ends with code %d:\n%s%s", o.Code, o.Stdout, o.Stderr)
	}
}

func (r *rig) mislabels(t *testing.T) {
	for _, team := range []string{"table", "state", "red"} {
		r.label("of-"+team, team)
	}
	eventually(t, "the last is in a topic of its own", func() bool {
		topics, err := r.kafka.Topics(t.Context())
		return err == nil && slices.Contains(topics, "team-red") && len(r.kafka.ConsumeFast(t, "team-red", kafka.JudgeOptions{ReadCommitted: true})) > 0
	})
	for _, team := range []string{"table", "state"} {
		for _, record := range r.kafka.ConsumeFast(t, "team-"+team, kafka.JudgeOptions{ReadCommitted: true}) {
			if strings.Contains(string(record.Key), "of-"+team) {
				t.Errorf("team-%s has %s", team, record.Key)
			}
		}
	}
}

func (r *rig) restarts(t *testing.T) {
	r.stop()
	r.put("web", "3")
	r.start()
	eventually(t, "Kafka has what was changed meanwhile", func() bool {
		records := r.kafka.ConsumeFast(t, "own.configmaps", kafka.JudgeOptions{ReadCommitted: true})
		return slices.ContainsFunc(records, func(record kafka.Record) bool { return strings.Contains(string(record.Value), `"key":"3"`) })
	})
}

func (r *rig) asks(t *testing.T) {
	nc := natsserver.Connect(t, r.nats).Conn()
	subject := ""
	for _, m := range messagesOf(t, r.nats, "BUS") {
		if strings.HasSuffix(m.Subject(), ".web") {
			subject = m.Subject()
		}
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "kubecdc.seen.list", Reply: subject}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("kubecdc.seen.list", nil, limit); err != nil { // it has followed the one before
		t.Fatal(err)
	}
	r.put("web", "4")
	eventually(t, "JetStream has the next change", func() bool {
		return slices.ContainsFunc(messagesOf(t, r.nats, "BUS"), func(m jetstream.Msg) bool { return strings.Contains(string(m.Data()), `"key":"4"`) })
	})
	for _, m := range messagesOf(t, r.nats, "BUS") {
		if m.Headers().Get("kubecdc-id") == "" {
			t.Errorf("%s has %s", m.Subject(), m.Data())
		}
	}
}

// TestI10ExportersOfSimilarNamesAreTwo: sink eu-lake of cluster prod and sink lake of cluster prod-eu write to one
// Kafka at once.
func TestI10ExportersOfSimilarNamesAreTwo(t *testing.T) {
	lake := brokers.Get(t)
	var rigs []*rig
	for cluster, sink := range map[string]string{"prod": "eu-lake", "prod-eu": "lake"} {
		r := newRig(t, cluster)
		r.configure("config.yaml", r.resource("configmaps", ""), fmt.Sprintf("  - {name: %s, kafka: {brokers: [%q], topic: '{cluster}', delivery: transactional}}", sink, lake.Brokers()[0]))
		r.start()
		rigs = append(rigs, r)
	}
	for i := range 4 {
		r := rigs[i%2]
		r.put("web", fmt.Sprint(i))
		eventually(t, "its change is in Kafka", func() bool {
			records := lake.ConsumeFast(t, r.namespace, kafka.JudgeOptions{ReadCommitted: true})
			return slices.ContainsFunc(records, func(record kafka.Record) bool {
				return strings.Contains(string(record.Value), fmt.Sprintf(`"key":"%d"`, i))
			})
		})
	}
}
