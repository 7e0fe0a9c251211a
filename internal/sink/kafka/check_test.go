package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestCheckNamesTheCause has a user who may do nothing at first.
func TestCheckNamesTheCause(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := secured.Get(t)
	cluster.CreateTopic(t, "k8s.pods", kafkatest.Topic{Config: map[string]string{"max.message.bytes": "2000000"}})
	cluster.CreateTopic(t, "k8s.few", kafkatest.Topic{Config: map[string]string{"min.insync.replicas": "2", "max.message.bytes": "2000000"}})
	cluster.CreateTopic(t, "k8s.small", kafkatest.Topic{Config: map[string]string{"max.message.bytes": "100000"}})
	options := Options{
		Wire:   wireAs(cluster, "bob"),
		Topics: []string{"k8s.pods"},
	}
	allow := func(resource string, operations ...kmsg.ACLOperation) func() {
		return func() {
			for _, operation := range operations {
				cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: operation, Resource: resource})
			}
		}
	}
	for _, step := range []struct {
		name   string
		allow  func()
		change func(*Options)
		want   []string // in the error
		note   []string
	}{
		{"wrong password", nil, func(o *Options) { o.Wire.SASL = &wire.SASL{Mechanism: wire.Plain, User: "bob", Password: "x"} }, []string{"password"}, nil},
		{"nobody there", nil, func(o *Options) { o.Wire.Brokers = []string{"127.0.0.1:1"} }, []string{"127.0.0.1:1", "refused"}, nil},
		{"nothing allowed", nil, nil, []string{"DESCRIBE on topic k8s.pods", "TOPIC_AUTHORIZATION_FAILED"}, nil},
		{"only DESCRIBE", allow("k8s.pods", kmsg.ACLOperationDescribe), nil, []string{"WRITE on topic k8s.pods"}, nil},
		{"WRITE", allow("k8s.pods", kmsg.ACLOperationWrite), nil, nil, []string{"READ is not permitted on topic k8s.pods", "DESCRIBE_CONFIGS"}},
		{"all", allow("k8s.pods", kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs), nil, nil, nil},
		{"transactional", nil, func(o *Options) { o.Delivery, o.TransactionalID = Transactional, "tx" }, []string{"grant", "on transactional id tx"}, nil},
		{"transactional and allowed", func() {
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationWrite, Type: kmsg.ACLResourceTypeTransactionalId, Resource: "tx"})
		}, func(o *Options) { o.Delivery, o.TransactionalID = Transactional, "tx" }, nil, nil},
		{"no such topic", func() {
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationAll, Resource: "k8s.", Prefix: true})
		}, func(o *Options) { o.Topics = append(o.Topics, "k8s.none") }, []string{"topic k8s.none", "create"}, nil},
		{"no such topic, which nobody has named", nil, func(o *Options) {
			o.Topics, o.Found = append(o.Topics, "k8s.none"), []string{"k8s.none"}
		}, nil, []string{"records of 1 resources", "dead letters", "topic k8s.none", "create"}},
		{"several partitions for one order", func() {
			config := map[string]string{"cleanup.policy": "compact", "max.message.bytes": "2000000"}
			cluster.CreateTopic(t, "k8s.many", kafkatest.Topic{Partitions: 2, Config: config})
		}, func(o *Options) { o.Topics, o.Whole = []string{"k8s.many"}, true }, []string{"open topic k8s.many: it has 2 partitions, and needs to have 1"}, nil},
		{"a key of several objects in a compacted topic", nil, func(o *Options) {
			o.Topics, o.Uncompacted = []string{"k8s.many"}, func(string) string { return "each would delete the others: change the key" }
		},
			[]string{"open topic k8s.many: the topic is compacted, and each would delete the others: change the key, or name another topic"}, nil},
		{"such a key elsewhere", nil, func(o *Options) { o.Uncompacted = func(string) string { return "each would delete the others" } }, nil, nil},
		{"a topic that forgets", nil, func(o *Options) { o.Whole = true }, []string{"open topic k8s.pods: its cleanup.policy is delete", "set compact"}, nil},
		{"to be created", nil, func(o *Options) { o.Topics, o.Create = append(o.Topics, "k8s.none"), true }, nil, nil},
		{"more replicas than brokers", nil, func(o *Options) { o.Topics, o.Create, o.Replication = append(o.Topics, "k8s.none"), true, 9 },
			[]string{"create topic k8s.none", "INVALID_REPLICATION_FACTOR", "kafka.replication"}, []string{"topic k8s.pods has 1 replicas, and 9 are configured"}},
		{"no such setting", nil, func(o *Options) {
			o.Topics, o.Create, o.Configs = append(o.Topics, "k8s.none"), true, map[string]string{"retention.mss": "1"}
		}, []string{"create topic k8s.none", "retention.mss", "kafka.topicConfig"}, nil},
		{"too few replicas", nil, func(o *Options) { o.Topics = []string{"k8s.few"} }, []string{"k8s.few", "min.insync.replicas is 2", "1 replicas"}, nil},
		{"small batches", nil, func(o *Options) { o.Topics = []string{"k8s.small"} }, nil, []string{"k8s.small", "97 KiB", "max.message.bytes"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.allow != nil {
				step.allow()
			}
			changed := options
			changed.Topics = slices.Clone(options.Topics)
			if step.change != nil {
				step.change(&changed)
			}
			note, err := answeredCheck(t, changed)
			contains(t, "error", text(err), step.want)
			contains(t, "note", note, step.note)
			if err != nil {
				opensNot(t, changed)
			}
		})
	}
	if exists(t, cluster, "k8s.none") {
		t.Error("a check has created a topic")
	}
}

// answeredCheck checks again where a busy broker did not answer in time.
func answeredCheck(t *testing.T, options Options) (note string, err error) {
	t.Helper()
	ctx := within(t)
	for {
		note, err = newTestSink(t, options).Check(ctx)
		if err == nil || errors.As(err, new(*sink.PermanentError)) || strings.Contains(err.Error(), "refused") || ctx.Err() != nil {
			return note, err
		}
	}
}

// opensNot: what a check finds ends Open, too, unless it may pass.
func opensNot(t *testing.T, options Options) {
	t.Helper()
	passes, wait := options.Wire.Brokers[0] == "127.0.0.1:1", limit
	if passes {
		wait = time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_, err := sinktest.Open(ctx, newTestSink(t, options), "")
	var permanent *sink.PermanentError
	if err == nil || errors.As(err, &permanent) == passes {
		t.Errorf("Open: %v", err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func contains(t *testing.T, what, got string, want []string) {
	t.Helper()
	if len(want) == 0 && got != "" {
		t.Errorf("%s %q, want none", what, got)
	}
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("%s %q does not tell of %q", what, got, part)
		}
	}
}

// TestWithoutREADTheSinkGoesOn: it tells so once, and what a crash left comes twice.
func TestWithoutREADTheSinkGoesOn(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := secured.Get(t)
	cluster.CreateTopic(t, "k8s.unread", kafkatest.Topic{})
	cluster.AddACL(t, kafkatest.ACL{User: "carol", Operation: kmsg.ACLOperationWrite, Resource: "k8s.unread"})
	var told []string
	s := newTestSink(t, Options{
		Wire:   wireAs(cluster, "carol"),
		Topics: []string{"k8s.unread"},
		Retry:  func(reason string, err error) { told = append(told, reason) },
	})
	open(t, s, "")
	mark := mustWrite(t, s, nil)
	mustWrite(t, s, messagesOf("k8s.unread", 3))
	for range 2 {
		if ids := open(t, s, mark); len(ids) > 0 {
			t.Errorf("got %q from a topic that must not be read", ids)
		}
	}
	if denied := slices.DeleteFunc(told, func(reason string) bool { return reason != "read_denied" }); len(denied) != 1 {
		t.Errorf("was told %d times that reading is not permitted", len(denied))
	}
	mustWrite(t, s, messagesOf("k8s.unread", 3))
	// with a topic that is nobody's any more
	open(t, s, `{"kafka":{"k8s.pods":{"next":[7]},"k8s.unread":{"next":[0]}}}`)

	cluster.RemoveACL(t, kafkatest.ACL{User: "carol", Operation: kmsg.ACLOperationWrite, Resource: "k8s.unread"})
	var permanent *sink.PermanentError
	if _, err := s.Write(t.Context(), messagesOf("k8s.unread", 1)); !errors.As(err, &permanent) || !strings.Contains(err.Error(), "grant the user WRITE on topic k8s.unread") {
		t.Errorf("Write after WRITE was taken away: %v, want an error that ends the run", err)
	}
}
