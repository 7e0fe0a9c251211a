package consumers

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/registry/serde"
)

// apicurioReads, with E2E_APICURIO=1, lets the deserialiser of Apicurio Registry read the topics of two formats, and a
// topic with an object of every built-in kind and of three well-known CRDs. What it makes of each value is written
// again, and restored by the schema that it has.
func (l *typedLog) apicurioReads(t *testing.T, want table) {
	for _, prefix := range []string{"debezium.", "object."} {
		t.Run(prefix, func(t *testing.T) {
			var topics []string
			for resource := range resources() {
				topics = append(topics, prefix+resource)
			}
			read := l.deserialise(t, topics...)
			got := l.foldOf(t, prefix, func(topic string) ([]kafka.Record, []typedValue) {
				return read[topic].records, read[topic].values
			})
			same(t, got, want)
		})
	}
	t.Run("kinds", func(t *testing.T) {
		all := typedObjects(t)
		l.produce(t, "kinds", all)
		read := l.deserialise(t, "kinds")["kinds"]
		restored := l.restoreValues(t, read.values)
		if len(restored) != len(all) || len(all) < 90 {
			t.Fatalf("of %d objects there are %d", len(all), len(restored))
		}
		for i, text := range restored {
			if got, want := spelled(t, text), spelled(t, all[i].object); !reflect.DeepEqual(got, want) {
				t.Errorf("%s is restored as\n%.2000s, want\n%.2000s", all[i].of.Name, text, all[i].object)
			}
		}
		t.Logf("%d kinds", len(all))
	})
}

// deserialised is what the deserialiser made of a topic. The records have their keys alone.
type deserialised struct {
	records []kafka.Record
	values  []typedValue
}

// deserialise reads the topics.
func (l *typedLog) deserialise(t *testing.T, topics ...string) map[string]deserialised {
	t.Helper()
	program := serde.Project()
	if err := program.Available(t.Context()); err != nil {
		t.Skip(err)
	}
	p, err := program.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(l.registry.URL(), "/ccompat/v7", "/registry/v3", 1)
	lines := output(t, java(p, append([]string{"Deserialise", l.kafka.Brokers()[0], own}, topics...)...)...)
	if lines[len(lines)-1] != "end" {
		t.Fatalf("the program stopped in the middle, after %d records", len(lines))
	}
	all, files := map[string]deserialised{}, map[string]string{}
	for _, line := range lines[:len(lines)-1] {
		part := strings.Split(line, "\t")
		topic := all[part[0]]
		topic.records = append(topic.records, kafka.Record{Key: decoded(t, part[1])})
		var value typedValue
		if part[2] != "-" {
			if files[part[2]] == "" {
				files[part[2]] = filepath.Join(t.TempDir(), fmt.Sprintf("%d.schema", len(files)))
				if err := os.WriteFile(files[part[2]], decoded(t, part[2]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			value = typedValue{files[part[2]], decoded(t, part[3])}
		}
		topic.values = append(topic.values, value)
		all[part[0]] = topic
	}
	return all
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// produce writes the objects into a new topic of one partition, each with its own schema.
func (l *typedLog) produce(t *testing.T, topic string, all []typedObject) {
	t.Helper()
	l.kafka.CreateTopic(t, topic, kafka.Topic{Partitions: 1})
	client, err := kgo.NewClient(kgo.SeedBrokers(l.kafka.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, one := range all {
		id, err := l.typedStage.schemas.RegisterSchema(t.Context(), fmt.Sprintf("%s-%d", topic, i), sr.Schema{Schema: string(one.of.Avro()), Type: sr.TypeAvro}, -1, -1)
		if err != nil {
			t.Fatal(err)
		}
		value, err := typed.NewEncoder(one.of).Append(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), one.object)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
