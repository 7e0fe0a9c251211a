package consumers

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/maven"
	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/validate"
)

// configuration is of one exporter with every format on every broker. The words are the formats' topics and streams.
const configuration = `
cluster: consumers
resources: [configmaps, secrets, clusterroles, widgets.example.com]
state: {dir: %[1]s/state}
listen: 127.0.0.1:0
sinks:
- {name: k1, kafka: {brokers: [%[2]q], topic: structured, partitions: 3}}
- {name: k2, kafka: {brokers: [%[2]q], topic: binary, partitions: 3}, format: cloudevents-binary}
- {name: k3, kafka: {brokers: [%[2]q], topic: "debezium.{resource}", partitions: 3, tombstones: true, frames: inline}, format: debezium, resolved: {every: 1s}}
- {name: k4, kafka: {brokers: [%[2]q], topic: "object.{resource}", partitions: 3}, format: object, resolved: {every: 1s}}
- {name: n1, nats: {url: %[3]q, stream: structured, subject: "structured.{resource}.{namespace}.{name}"}}
- {name: n2, nats: {url: %[3]q, stream: binary, subject: "binary.{resource}.{namespace}.{name}"}, format: cloudevents-binary}
- {name: n3, nats: {url: %[3]q, stream: debezium, subject: "debezium.{resource}.{namespace}.{name}"}, format: debezium, resolved: {every: 1s}}
- {name: n4, nats: {url: %[3]q, stream: object, subject: "object.{resource}.{namespace}.{name}"}, format: object, resolved: {every: 1s}}
`

// formats is a stage with a JetStream, and with programs that read every format.
type formats struct {
	*stage
	nats  *natsserver.Server
	sdk   string
	flink maven.Dir
}

// TestConsumersThatWeDidNotWriteSeeTheCluster writes every kind of record to every broker in every format.
func TestConsumersThatWeDidNotWriteSeeTheCluster(t *testing.T) {
	requireJava(t)
	s := &formats{nats: natsserver.Start(t), sdk: filepath.Join(t.TempDir(), "sdk")}
	s.stage = newStage(t, func() error { return buildSDK(t.Context(), s.sdk) },
		func() (err error) { s.flink, err = flink().Install(t.Context()); return err })
	want := s.play(t)
	t.Run("cloudevents", func(t *testing.T) {
		logs := map[string][]event{}
		for _, mode := range []string{"structured", "binary"} {
			for broker, address := range map[string]string{"kafka": s.brokers(), "nats": s.nats.URL()} {
				count := "all"
				if broker == "kafka" {
					count = strconv.Itoa(len(s.kafka.ConsumeFast(t, mode, kafka.JudgeOptions{})))
				}
				events := sdkEvents(t, mode, s.sdk, broker, address, mode, count)
				checkEvents(t, events, want)
				logs[broker+" "+mode] = events
			}
		}
		for _, other := range []string{"kafka binary", "nats structured", "nats binary"} {
			sameEvents(t, logs["kafka structured"], logs[other])
		}
	})
	t.Run("debezium", func(t *testing.T) {
		got, kinds := flinkTable(t, s.flink, s.brokers(), "debezium.")
		same(t, got, columnsOf(want))
		for _, kind := range []string{"+I", "-U", "+U", "-D"} {
			if kinds[kind] == 0 {
				t.Errorf("Flink's changelog has no %s among its rows %v", kind, kinds)
			}
		}
	})
	t.Run("object", func(t *testing.T) { same(t, s.objects(t), want) })
	t.Run("schemas", func(t *testing.T) { s.validate(t) })
}

// play lets everything happen, and returns what the cluster has in the end.
func (s *formats) play(t *testing.T) table {
	t.Helper()
	s.configure(t, configuration, s.nats.URL())
	s.w.populate()
	s.x.start(t)
	s.x.settle(t)
	s.w.change()
	s.x.settle(t)
	s.x.stop(t)
	s.w.forget(s.cluster)
	s.x.start(t)
	s.x.reconciles(t, "gone", len(resources()))
	s.x.settle(t)
	s.x.stop(t)
	return s.w.list(resources())
}

// objects are what is left of the topics of bare objects when the last record of each key counts, as in a compacted
// topic. Java's own consumer reads them.
func (s *formats) objects(t *testing.T) table {
	t.Helper()
	all := table{}
	for resource := range resources() {
		for _, r := range s.kafka.Consume(t, "object."+resource, kafka.JudgeOptions{}) {
			namespace, name, found := strings.Cut(string(r.Key), "/")
			if !found {
				namespace, name = "", string(r.Key)
			}
			switch k := key(resource, namespace, name); {
			case strings.HasPrefix(name, "/") || namespace == "" && found: // of the stream
			case r.Value == nil:
				delete(all, k)
			default:
				all[k] = comparable(t, r.Value)
			}
		}
	}
	return all
}

// validate holds every message of every log against the schemas.
func (s *formats) validate(t *testing.T) {
	v, err := validate.NewClosed()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"structured": "cloudevents", "binary": "cloudevents-binary", "debezium": "debezium", "object": "object"}
	topics := []string{"structured", "binary"}
	for resource := range resources() {
		topics = append(topics, "debezium."+resource, "object."+resource)
	}
	tombstones := map[string]int{}
	for _, topic := range topics {
		kind, _, _ := strings.Cut(topic, ".")
		for _, r := range s.kafka.ConsumeFast(t, topic, kafka.JudgeOptions{}) {
			m := validate.Message{Format: names[kind], Headers: map[string]string{}, Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				m.Headers[h.Key] = string(h.Value)
			}
			if m.Value == nil && m.Headers["kubecdc-op"] == "deleted" {
				tombstones[kind]++
			}
			check(t, v, m)
		}
	}
	if tombstones["debezium"] == 0 || tombstones["object"] == 0 {
		t.Errorf("there are no tombstones, or not in every format: %v", tombstones)
	}
	for stream, format := range names {
		for _, message := range messagesOf(t, s.nats.URL(), stream) {
			m := validate.Message{Format: format, NATS: true, Headers: map[string]string{}, Value: message.Data}
			for name, values := range message.Header {
				m.Headers[name] = values[0]
			}
			check(t, v, m)
		}
	}
}

func check(t *testing.T, v *validate.Validator, m validate.Message) {
	t.Helper()
	m.Op = m.Headers["kubecdc-op"]
	if m.Op == "" || m.Headers["kubecdc-id"] == "" || m.Headers["kubecdc-rv"] == "" {
		t.Errorf("%s: headers are %v", m.Format, m.Headers)
	}
	if err := v.Message(m); err != nil {
		t.Errorf("%s: %v", m.Format, err)
	}
}

// messagesOf are all of a stream, and must be some.
func messagesOf(t *testing.T, url, stream string) []*nats.RawStreamMsg {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := nats.Connect(url, nats.Timeout(limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := conn.JetStream(nats.Context(ctx))
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo(stream)
	if err != nil || info.State.Msgs == 0 {
		t.Fatalf("stream %s: %v", stream, err)
	}
	var all []*nats.RawStreamMsg
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		message, err := js.GetMsg(stream, seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message)
	}
	return all
}
