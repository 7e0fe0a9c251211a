package docs

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	sinkkafka "github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	"github.com/kubecdc/kubecdc/test/child"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/python"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// kafkaPython is what the pages tell to install, of a version.
const kafkaPython = "kafka-python[zstd]==3.0.12"

// TestThePythonOfThePagesReadsATopic as it is printed, with the library that the page names, from a topic as the sink
// writes it: compressed with zstd, in a transaction, with frames, a gap of one namespace, and a tombstone.
func TestThePythonOfThePagesReadsATopic(t *testing.T) {
	kafka.RequireReal(t)
	cluster := kafka.Start(t, kafka.Options{})
	ran := 0
	for page, text := range pages(t) {
		for _, b := range blocks(t, page, text) {
			if !b.is("python") || !strings.Contains(b.text, "KafkaConsumer") {
				continue
			}
			if ran++; ran == 1 {
				fill(t, cluster, "k8s.prod-eu1.configmaps")
			}
			if name, _, _ := strings.Cut(kafkaPython, "=="); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s does not say that %s is needed", page, name)
			}
			const want = "changes may be missing: gone\ngap shop//gap 0\nsnapshot.begin shop//snapshot.begin 0\nreplaced shop/a 1\n" +
				"added shop/b 2\nsnapshot.end shop//snapshot.end 2\ndeleted shop/b 2\nadded shop/c 2\n"
			if got, said := readsOn(t, strings.ReplaceAll(b.text, "kafka:9092", cluster.Brokers()[0]), strings.Count(want, "\n")); got != want {
				t.Errorf("%s:%d prints\n%s\nwant\n%s\n%s", page, b.line, got, want, said)
			}
		}
	}
	if ran == 0 {
		t.Error("no page reads a topic")
	}
}

// readsOn runs a program that reads on for ever until it has printed so many lines, and returns them, and what else it
// said.
func readsOn(t *testing.T, program string, lines int) (printed, said string) {
	t.Helper()
	cmd := python.Command(t, []string{kafkaPython}, "-u", "-c", program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	running, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(limit, running.Kill)
	defer stop.Stop()
	for scanner := bufio.NewScanner(out); lines > 0 && scanner.Scan(); lines-- {
		printed += scanner.Text() + "\n"
	}
	running.Kill()
	return printed, stderr.String()
}

// fill writes records to the topic, as the exporter does.
func fill(t *testing.T, cluster *kafka.Cluster, topic string) {
	t.Helper()
	written, err := sinkkafka.New(sinkkafka.Options{
		Wire: wire.Options{Brokers: cluster.Brokers()}, Topics: []string{topic}, Create: true, Partitions: 1, Replication: 1,
		Delivery: sinkkafka.Transactional, TransactionalID: "kubecdc-docs",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close(t.Context())
	if _, err = sinktest.Open(t.Context(), written, ""); err == nil {
		_, err = written.Write(t.Context(), encoded(t, topic))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// encoded are the records of a stream of one namespace.
func encoded(t *testing.T, topic string) (messages []sink.Message) {
	t.Helper()
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}, Namespace: "shop"}
	encoder := encode.NewEncoder(encode.Options{Cluster: "dev", ClusterUID: "0b6f3c1e", Format: encode.FormatCloudEvents, Transport: encode.Kafka, Tombstones: true})
	snapshot := &change.Snapshot{ID: "9.1", Reason: change.Gone, From: "1", ResourceVersion: "9"}
	var err error
	tell := func(op change.Op, name string) {
		rec := &change.Record{Stream: stream, Op: op, ResourceVersion: "9", Received: time.UnixMilli(1), Snapshot: snapshot}
		if op.OfObject() {
			rec.Key, rec.UID, rec.Object = change.Key{Namespace: "shop", Name: name}, "u-1", []byte(`{"kind":"ConfigMap"}`)
		}
		if messages, err = encoder.Encode(t.Context(), messages, rec); err != nil {
			t.Fatal(err)
		}
	}
	tell(change.Gap, "")
	tell(change.SnapshotBegin, "")
	tell(change.Replaced, "a")
	tell(change.Added, "b")
	tell(change.SnapshotEnd, "")
	tell(change.Deleted, "b")
	tell(change.Added, "c")
	for i := range messages {
		messages[i].Destination = topic
	}
	return messages
}
