package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestI4WhatSpeaksAgainstATopicOfDataIsTheMessages: a topic that a label has chosen collides with another one's name,
// is missing, or must not be written to. The message is rejected, without a place for a note, and the others go on.
func TestI4WhatSpeaksAgainstATopicOfDataIsTheMessages(t *testing.T) {
	kafkatest.RequireReal(t)
	cluster := secured.Get(t)
	for _, delivery := range []string{Idempotent, Transactional} {
		t.Run(delivery, func(t *testing.T) {
			prefix := "data-" + delivery
			cluster.CreateTopic(t, prefix, kafkatest.Topic{})
			cluster.CreateTopic(t, prefix+".a.b", kafkatest.Topic{})
			cluster.CreateTopic(t, prefix+".revoked", kafkatest.Topic{})
			revoked := kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationAll, Resource: prefix + ".revoked"}
			cluster.AddACL(t, revoked)
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationAll, Resource: prefix})
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationAll, Resource: prefix + ".a", Prefix: true})
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationAll, Resource: prefix + ".missing"})
			cluster.AddACL(t, kafkatest.ACL{User: "bob", Operation: kmsg.ACLOperationWrite, Type: kmsg.ACLResourceTypeTransactionalId, Resource: prefix})
			options := Options{
				Wire:   wireAs(cluster, "bob"),
				Topics: []string{prefix}, Create: true, Delivery: delivery, TransactionalID: prefix,
			}
			s := opened(t, options)
			rejects(t, s, prefix, prefix+".a_b", "collides")
			rejects(t, s, prefix, "else-where", "DESCRIBE on topic else-where")
			rejects(t, s, prefix, prefix+"."+strings.Repeat("x", 300), "249")
			mark := mustWrite(t, s, messagesOf(prefix+".revoked", 3))
			s.options.Create = false
			rejects(t, s, prefix, prefix+".missing", "does not exist")

			cluster.RemoveACL(t, revoked)
			_, err := s.Write(t.Context(), messagesOf(prefix+".revoked", 3))
			for ctx := within(t); err == nil && ctx.Err() == nil; { // brokers take a moment to hear of it
				_, err = s.Write(t.Context(), messagesOf(prefix+".revoked", 3))
			}
			expectReopen(t, err)
			open(t, s, mark)
			rejects(t, s, prefix, prefix+".revoked", "on topic "+prefix+".revoked")
			next := opened(t, options, mark)
			rejects(t, next, prefix, prefix+".revoked", "on topic "+prefix+".revoked")
		})
	}
}

// TestI4WhatAWildcardFoundDoesNotKeepTheSinkShut: each life meets topics of resources that nobody has named, and that
// cannot be had. The sink opens, rejects what is for them, and has the topic when somebody has made it.
func TestI4WhatAWildcardFoundDoesNotKeepTheSinkShut(t *testing.T) {
	cluster := broker.Get(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		good := options.Topics[0]
		missing, long := good+".missing", good+strings.Repeat("x", 250)
		cluster.CreateTopic(t, good, kafkatest.Topic{})
		options.Create = false
		s := opened(t, options)
		rejects(t, s, good, missing, "does not exist")
		mark := mustWrite(t, s, messagesOf(good, 1))

		options.Topics, options.Found = []string{good, missing, long}, []string{missing, long}
		next := newTestSink(t, options)
		next.tuning.closed = 0
		open(t, next, mark)
		rejects(t, next, good, missing, "does not exist")
		rejects(t, next, good, long, "249")
		note, err := newTestSink(t, options).Check(within(t))
		if err != nil || !strings.Contains(note, "records of 2 resources that a wildcard stands for") {
			t.Errorf("check says %q, %v", note, err)
		}
		reader, err := NewReader(options, sink.Start{})
		if err == nil {
			err = errors.Join(reader.Read(within(t), func(*sink.Stored) error { return nil }), reader.Close())
		}
		if err != nil {
			t.Errorf("read the topics beside one that cannot be: %v", err)
		}
		cluster.CreateTopic(t, missing, kafkatest.Topic{})
		mustWrite(t, next, messagesOf(missing, 3))
		cluster.AwaitTransactions(t, missing)
		sameSet(t, missing, storedIDs(t, cluster, missing), idsOf(messagesOf("", 3)))

		options.Found = nil
		if _, err := New(options); err == nil {
			t.Error("a name that no topic can have is taken")
		}
		options.Topics = []string{good, good + ".named"}
		if _, err := sinktest.Open(within(t), newTestSink(t, options), mark); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("a topic that is named, and missing: %v", err)
		}
	})
}

// rejects writes one message to the topic between others to a good one.
func rejects(t *testing.T, s *Sink, good, topic, why string) {
	t.Helper()
	messages := messagesOf(good, 4)
	messages[1].Destination, messages[2].Destination = topic, topic
	for range 2 { // the second time out of memory
		var rejected *sink.RejectedError
		_, err := s.Write(t.Context(), messages)
		if !errors.As(err, &rejected) || rejected.Index != 1 || !rejected.NoPlace || !strings.Contains(err.Error(), why) {
			t.Fatalf("a message for topic %.50s: %v, want it rejected without a place, because %q", topic, err, why)
		}
	}
	mustWrite(t, s, messages[3:])
}

// TestI6LabelsMakeSoManyTopics and no more, also over restarts. Topics that somebody else made do not count.
func TestI6LabelsMakeSoManyTopics(t *testing.T) {
	cluster := broker.Get(t)
	options := testOptions(t, cluster, 1)
	var made int
	var told []string
	options.LabelTopics = 3
	options.Made = func(topics int) { made = topics }
	options.Notice = func(text string) { told = append(told, text) }
	label := func(n int) string { return fmt.Sprint(options.Topics[0], ".label-", n) }
	cluster.CreateTopic(t, label(0), kafkatest.Topic{})
	s := opened(t, options)
	mustWrite(t, s, messagesOf(label(0), 1))
	mustWrite(t, s, messagesOf(label(1), 1))
	mark := mustWrite(t, s, messagesOf(label(2), 1))
	if made != 2 {
		t.Errorf("%d topics were made, want 2", made)
	}
	next := opened(t, options, mark)
	mustWrite(t, next, messagesOf(label(3), 1))
	for n := range 3 {
		rejects(t, next, options.Topics[0], label(4+n), "kafka.labelTopics")
	}
	if made != 3 {
		t.Errorf("%d topics were made, want 3", made)
	}
	expectTold(t, told, "3 topics for labels")
	if exists(t, cluster, label(4)) {
		t.Error("a fourth one was made")
	}
}

// TestI5ATopicThatDataChoseIsInTheMarkBeforeItsFirstRecord, so that the life after a crash finds there what was
// written, however soon the crash comes.
func TestI5ATopicThatDataChoseIsInTheMarkBeforeItsFirstRecord(t *testing.T) {
	cluster := broker.Get(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		options.LabelTopics = 2
		good := options.Topics[0]
		there, made := good+".there", good+".made"
		cluster.CreateTopic(t, there, kafkatest.Topic{})
		s := opened(t, options)
		saved := mustWrite(t, s, messagesOf(good, 1))
		if add, err := s.Announce(t.Context(), messagesOf(good, 3)); err != nil || add != nil {
			t.Fatalf("a topic that is named is announced: %v", err)
		}
		messages := append(messagesOf(there, 2), messagesOf(made, 2)...)
		messages[2].ID, messages[3].ID = "made-0", "made-1"
		add, err := s.Announce(t.Context(), messages)
		if err != nil || add == nil {
			t.Fatalf("topics that data chose are not announced: %v", err)
		}
		saved, err = add(saved)
		must(t, err)
		mustWrite(t, s, messages)
		if add, err := s.Announce(t.Context(), messages); err != nil || add != nil {
			t.Errorf("what is announced is announced again: %v", err)
		}
		next := newTestSink(t, options)
		sameSet(t, "after the crash", open(t, next, saved), idsOf(messages))
		if n := next.made(); n != 1 {
			t.Errorf("%d topics count as made, want 1", n)
		}
		if add, err := next.Announce(t.Context(), messages); err != nil || add != nil {
			t.Errorf("what the mark has is announced: %v", err)
		}
	})
}
