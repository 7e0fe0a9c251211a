package kafka

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// living is what compaction leaves of the topic: the newest value of each key in each partition.
func living(t *testing.T, cluster *kafkatest.Cluster, topic string) map[string]string {
	t.Helper()
	alive := map[string]string{}
	for _, r := range committed(t, cluster, topic) {
		if at := string(r.Key); r.Value == nil {
			delete(alive, at)
		} else {
			alive[at] = string(r.Headers[0].Value)
		}
	}
	return alive
}

func expectLiving(t *testing.T, cluster *kafkatest.Cluster, topic string, ids ...string) {
	t.Helper()
	sameSet(t, "living", slices.Collect(maps.Values(living(t, cluster, topic))), ids)
}

// inForm is the options with a form of keys, which is compared by its text.
func inForm(options Options, form string) Options {
	options.Form = []byte(`{"key":"` + form + `"}`)
	options.Changed = func(before []byte, _ func(string) bool) string {
		if string(before) == `{"key":"`+form+`"}` {
			return ""
		}
		return "its keys were otherwise"
	}
	return options
}

// TestI4ATableWhoseKeysChangeIsRefused by Check and Open, unless the old keys may end: then nothing lives under them,
// and everything is to be told again, also where the process was killed between the two, and the form is what it was.
func TestI4ATableWhoseKeysChangeIsRefused(t *testing.T) {
	cluster := broker.Get(t)
	eachDelivery(t, 1, func(t *testing.T, options Options) {
		options.Cleanup = "compact"
		topic := options.Topics[0]
		first := opened(t, inForm(options, "a"))
		gone := message(topic, "gone", "id-gone")
		gone.Value = nil
		mark := mustWrite(t, first, append(messagesOf(topic, 30), message(topic, "gone", "id-0"), gone))

		changed := inForm(options, "b")
		const wants = "its keys were otherwise"
		expectRefusal(t, "check", checkMark(t, changed, mark), wants)
		expectRefusal(t, "check of the same", checkMark(t, inForm(options, "a"), mark), "")
		_, err := sinktest.Open(t.Context(), newTestSink(t, changed), mark)
		expectRefusal(t, "open", err, wants)
		if len(living(t, cluster, topic)) != 10 {
			t.Fatal("a refusal has changed the topic")
		}
		changed.AcceptNewKeys = true
		accepting := newTestSink(t, changed)
		accepting.tuning.records = 3 // of keys that are remembered
		expectLost(t, accepting, mark)
		expectLiving(t, cluster, topic)
		holds(t, accepting)
		next := mustWrite(t, accepting, []sink.Message{message(topic, "new", "id-new")})
		expectLiving(t, cluster, topic, "id-new")
		expectRefusal(t, "check of the form before", checkMark(t, inForm(options, "a"), next), wants)
		saved := opened(t, inForm(options, "b"), next)
		holds(t, saved, "id-new")
		killed := newTestSink(t, inForm(options, "a")) // before anything was saved
		expectLost(t, killed, mark)
		holds(t, killed)
		expectLiving(t, cluster, topic)
	})
}

// TestI4ATableOfWhichNoStateKnowsIsToldOf by Check and Open, as after a lost volume, or of a sink of another name.
// Somebody else may write there, so nothing of it is ended unless new keys are accepted.
func TestI4ATableOfWhichNoStateKnowsIsToldOf(t *testing.T) {
	cluster := broker.Get(t)
	eachDelivery(t, 2, func(t *testing.T, options Options) {
		var told []string
		options = inForm(options, "a")
		options.Cleanup, options.Warn = "compact", func(text string) { told = append(told, text) }
		topic := options.Topics[1]
		checked := func() string {
			t.Helper()
			note, err := newTestSink(t, options).CheckMark(within(t), "")
			must(t, err)
			return note
		}
		if note := checked(); note != "" {
			t.Errorf("of topics that are not there check says %q", note)
		}
		opened(t, options)
		killed := newTestSink(t, options) // before its mark was saved
		open(t, killed, "")
		gone := message(topic, "key-0", "id-gone")
		gone.Value = nil
		mustWrite(t, killed, []sink.Message{message(topic, "key-0", "id-0"), gone})
		opened(t, options)
		if note := checked(); note != "" || len(told) > 0 {
			t.Errorf("of topics with nothing alive check says %q, and the start %q", note, told)
		}

		written := opened(t, options)
		mark := mustWrite(t, written, messagesOf(topic, 30))
		const wants = "no state knows what is in it"
		if note := checked(); !strings.Contains(note, topic) || !strings.Contains(note, wants) {
			t.Errorf("check says %q", note)
		}
		opened(t, options, mark)
		if len(told) > 0 {
			t.Errorf("where the mark has the topic the start says %q", told)
		}
		opened(t, options)
		expectTold(t, told, wants)
		if left := living(t, cluster, topic); len(left) != 10 {
			t.Errorf("alive are %q", left)
		}

		data := options // choose the topic
		data.Topics, told = options.Topics[:1], nil
		chosen := opened(t, data)
		mustWrite(t, chosen, messagesOf(topic, 1))
		mustWrite(t, chosen, messagesOf(topic, 1))
		expectTold(t, told, wants)
		data.AcceptNewKeys = true
		chosen = opened(t, data)
		mark = mustWrite(t, chosen, nil)
		if _, err := chosen.Write(t.Context(), messagesOf(topic, 1)); !errors.As(err, new(*reopenError)) {
			t.Errorf("a topic of which no state knows, whose keys may end: %v", err)
		}
		expectLost(t, chosen, mark)
		expectLiving(t, cluster, topic)
		mustWrite(t, chosen, messagesOf(topic, 30))

		options.AcceptNewKeys = true
		accepting := newTestSink(t, options)
		accepting.tuning.records = 3 // of keys that are remembered
		expectLost(t, accepting, "")
		expectLiving(t, cluster, topic)
		holds(t, accepting)
		opened(t, options) // there is nothing to accept
	})
}

// TestI4OnceOneKeyHasEndedAllEnd of its topic, where the process that ended them was killed meanwhile: what nobody
// counts any more must not live.
func TestI4OnceOneKeyHasEndedAllEnd(t *testing.T) {
	cluster := broker.Get(t)
	options := inForm(testOptions(t, cluster, 1), "a")
	options.Cleanup = "compact"
	topic := options.Topics[0]
	killed := opened(t, options)
	mark := mustWrite(t, killed, messagesOf(topic, 30))
	m := messagesOf(topic, 1)[0]
	must(t, killed.end(t.Context(), killed.topics[topic].partitionsOf(&m)[0], []string{string(m.Key)}))
	next := newTestSink(t, options)
	expectLost(t, next, mark)
	expectLiving(t, cluster, topic)
	holds(t, next)
}

func checkMark(t *testing.T, options Options, mark sink.Mark) error {
	t.Helper()
	_, err := newTestSink(t, options).CheckMark(within(t), mark)
	return err
}

// holds wants of a sink that it says of its topics that they hold the messages.
func holds(t *testing.T, s *Sink, want ...string) {
	t.Helper()
	var got []string
	must(t, s.Reread(t.Context(), func(id string) error { got = append(got, id); return nil }))
	sameSet(t, "what the topics hold", got, want)
}

func expectLost(t *testing.T, s *Sink, mark sink.Mark) {
	t.Helper()
	var lost *sink.LostError
	if _, err := sinktest.Open(t.Context(), s, mark); !errors.As(err, &lost) {
		t.Errorf("open: %v, want that everything is to be told again", err)
	}
}

// TestI3ALogGoesOnInAnotherForm, and says so: nothing would stay in it for ever.
func TestI3ALogGoesOnInAnotherForm(t *testing.T) {
	options := testOptions(t, broker.Get(t), 1)
	options.Cleanup = "delete"
	s := opened(t, inForm(options, "a"))
	mark := mustWrite(t, s, messagesOf(options.Topics[0], 3))
	var told []string
	options.Warn = func(text string) { told = append(told, text) }
	next := opened(t, inForm(options, "b"), mark)
	expectTold(t, told, "its keys were otherwise")
	open(t, newTestSink(t, inForm(options, "b")), mustWrite(t, next, nil))
	if len(told) != 1 {
		t.Errorf("was told again: %q", told)
	}
}

// TestI3AnIDInKeysDoesNotChooseThePartition, but in topics that were begun when it did. In a table another id is
// another key.
func TestI3AnIDInKeysDoesNotChooseThePartition(t *testing.T) {
	cluster := broker.Get(t)
	options := inForm(testOptions(t, cluster, 1), "a")
	options.Partitions, options.Cleanup = 5, "compact"
	topic := options.Topics[0]
	typed := func(id uint32) sink.Message {
		m := message(topic, strings.Repeat("x", int(id))+"web", "id-"+string(rune('a'+id)))
		m.Partition, m.KeySchema = []byte("web"), id
		return m
	}
	s := opened(t, options)
	mark := mustWrite(t, s, []sink.Message{typed(7)})
	_, err := s.Write(t.Context(), []sink.Message{typed(9)})
	expectRefusal(t, "another id", err, "has id 9 for its keys now, which was 7")
	options.AcceptNewKeys = true
	s = opened(t, options, mark)
	if _, err := s.Write(t.Context(), []sink.Message{typed(9)}); !errors.As(err, new(*reopenError)) {
		t.Errorf("another id that is accepted: %v", err)
	}
	expectLost(t, s, mark)
	mark = mustWrite(t, s, []sink.Message{typed(9)})
	expectLiving(t, cluster, topic, typed(9).ID)
	partitions := map[int]bool{}
	for _, r := range committed(t, cluster, topic) {
		partitions[r.Partition] = true
	}
	if len(partitions) != 1 {
		t.Errorf("the object is in %d partitions", len(partitions))
	}
	at, err := parseMark(mark)
	if err != nil || at.Topics[topic].ByKey || at.Topics[topic].Schema != 9 {
		t.Errorf("the mark is %s, %v", mark, err)
	}
	leads := func(name string) bool { return name == topic }
	expectRefusal(t, "check of another id", CheckKey(mark, 7, leads), "has id 7 for its keys now, which was 9")
	for name, refused := range map[string]error{
		"of the same": CheckKey(mark, 9, leads), "of none": CheckKey(mark, 0, leads), "of other topics": CheckKey(mark, 7, func(string) bool { return false }), "before the start": CheckKey("", 7, leads),
	} {
		expectRefusal(t, name, refused, "")
	}
	old, err := parseMark(`{"kafka":{"t":{"next":[7]}}}`)
	if err != nil || !old.Topics["t"].ByKey {
		t.Errorf("a mark of an earlier version: %+v, %v", old, err)
	}
	began := newTopic(wire.Topic{Partitions: make([]wire.Partition, 64)}, wire.Settings{})
	began.byKey = true
	m := typed(7)
	if by := (&sink.Message{Key: m.Key}); began.partitionsOf(&m)[0] != began.partitionsOf(by)[0] {
		t.Error("a topic that was begun with keys alone is spread otherwise")
	}
	if m.KeySchema = 0; began.partitionsOf(&m)[0] != began.partitionsOf(&sink.Message{Key: m.Partition})[0] {
		t.Error("a gap is not in the partition of its object")
	}
}
