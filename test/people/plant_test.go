package people

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/natsserver"
)

// found is one record of a sink, and the way to put one after it.
type found struct {
	id    string
	key   string // the Kafka key, or the subject
	value []byte
}

// shelf is a sink as others write to it: the test reads and plants records without the exporter's own code.
type shelf struct {
	records []found
	plant   func(found)
}

// forge plants a copy of the record of object same, with another name, version and operation; "" leaves the version.
func (s *shelf) forge(t *testing.T, name, version, op string) {
	t.Helper()
	for _, r := range slices.Backward(s.records) {
		part := strings.Split(r.id, "/") // cluster, resource, namespace, name, uid, version, operation
		if part[3] != "same" {
			continue
		}
		part[3], part[6] = name, op
		if version != "" {
			part[5] = version
		}
		id := strings.Join(part, "/")
		s.plant(found{id: id, key: strings.Replace(r.key, "same", name, 1), value: bytes.ReplaceAll(r.value, []byte(r.id), []byte(id))})
		return
	}
	t.Fatal("the sink has no record of object same")
}

// plantAll plants the same in each sink: what a missing delete leaves, an object that never was, an older version, and
// a delete that never was.
func (s *shelf) plantAll(t *testing.T) {
	t.Helper()
	s.forge(t, "gone", "", "added")
	s.forge(t, "ghost", "", "added")
	s.forge(t, "old", "1", "updated")
	s.forge(t, "cut", "", "deleted")
}

func fileShelf(t *testing.T, path string) *shelf {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(line, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		s.records = append(s.records, found{id: id, value: []byte(line)})
	}
	s.plant = func(r found) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(r.value); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// messagesOf are all that the stream has.
func messagesOf(t *testing.T, url, stream string) (all []jetstream.Msg) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	consumer, err := natsserver.Connect(t, url).OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for pending := uint64(1); pending > 0; {
		message, err := consumer.Next(jetstream.FetchMaxWait(limit))
		if err != nil {
			t.Fatal(err)
		}
		meta, err := message.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		pending = meta.NumPending
		all = append(all, message)
	}
	return all
}

func streamShelf(t *testing.T, url, stream string) *shelf {
	t.Helper()
	js, s := natsserver.Connect(t, url), &shelf{}
	for _, message := range messagesOf(t, url, stream) {
		s.records = append(s.records, found{message.Headers().Get("kubecdc-id"), message.Subject(), message.Data()})
	}
	s.plant = func(r found) {
		message := &nats.Msg{Subject: r.key, Data: r.value, Header: nats.Header{"kubecdc-id": {r.id}}}
		if strings.HasSuffix(r.id, "/deleted") && strings.HasPrefix(stream, "KV_") {
			message.Data, message.Header["KV-Operation"] = nil, []string{"DEL"}
		}
		if _, err := js.PublishMsg(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func topicShelf(t *testing.T, c *kafka.Cluster, topic string) *shelf {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &shelf{}
	for _, r := range c.ConsumeFast(t, topic, kafka.JudgeOptions{ReadCommitted: true}) {
		for _, h := range r.Headers {
			if h.Key == "kubecdc-id" {
				s.records = append(s.records, found{string(h.Value), string(r.Key), r.Value})
			}
		}
	}
	s.plant = func(r found) {
		record := &kgo.Record{Topic: topic, Key: []byte(r.key), Value: r.value, Timestamp: time.Now(), Headers: []kgo.RecordHeader{{Key: "kubecdc-id", Value: []byte(r.id)}}}
		if err := client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
