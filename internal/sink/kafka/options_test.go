package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

func TestOptionsNameEveryProblem(t *testing.T) {
	good := Options{Wire: wire.Options{Brokers: []string{"127.0.0.1:9092"}}, Topics: []string{"k8s.pods"}}
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"good", func(*Options) {}, nil},
		{"bad topics", func(o *Options) { o.Topics = []string{"a b", "", "..", strings.Repeat("x", 250)} }, []string{`"a b"`, `""`, `".."`, "249"}},
		{"id", func(o *Options) { o.TransactionalID = "x" }, nil},
		{"retention", func(o *Options) { o.Retention = time.Millisecond }, []string{"kafka.retention is 1ms"}},
		{"twice", func(o *Options) { o.Cleanup, o.Configs = "compact", map[string]string{"cleanup.policy": "delete"} }, []string{"cleanup.policy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := good
			c.change(&options)
			_, err := New(options)
			contains(t, "error", text(err), c.want)
		})
	}
}

func TestSpecOfATopic(t *testing.T) {
	o := Options{Partitions: 6, Replication: 3, Cleanup: "compact,delete", Retention: 36 * time.Hour, Configs: map[string]string{"segment.ms": "1000"}}
	spec := o.spec("t")
	if spec.Partitions != 6 || spec.Replication != 3 || len(spec.Configs) != 3 || spec.Configs["cleanup.policy"] != "compact,delete" ||
		spec.Configs["retention.ms"] != "129600000" || spec.Configs["segment.ms"] != "1000" {
		t.Errorf("got %+v", spec)
	}
}

func TestMarksOfOtherSinksAreRefused(t *testing.T) {
	for _, mark := range []string{"stdout", `{"stream":"K8S","seq":7}`, "{}", `{"kafka":7}`} {
		if _, err := parseMark(sink.Mark(mark)); err == nil {
			t.Errorf("mark %q was read", mark)
		}
	}
}
