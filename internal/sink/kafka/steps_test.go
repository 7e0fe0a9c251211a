package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
	kafkatest "github.com/kubecdc/kubecdc/test/kafka"
)

// TestI3WhatIsElsewhereWaits: while a partition fails, nothing is in another one whose record says that what lies in
// the first is there, too. So says a newer state of the object, by which a recovery takes the older ones for written,
// and so says a frame.
func TestI3WhatIsElsewhereWaits(t *testing.T) {
	cluster := broker.Get(t)
	kafkatest.RequireReal(t)
	of := func(topic, version string, op change.Op) sink.Message {
		m := message(topic, "shop/web", "0a1b2c3d/pods/shop/web/u-1/"+version+"/"+op.String())
		m.Op = op.String()
		return m
	}
	frame := func(topic, resource string, op change.Op) sink.Message {
		m := message(topic, "/"+op.String(), "0a1b2c3d/"+resource+"////9/"+op.String()+"/s-1")
		m.Op = op.String()
		return m
	}
	hashed := func(topic string) sink.Message {
		rec := change.Record{Key: change.Key{Namespace: "shop", Name: "web"}, ResourceVersion: "6", UID: "u-1",
			Stream: &change.Stream{Resource: change.Resource{Name: "pods", Version: "v1"}}}
		note := change.ShorterNote(change.NoteOf(&rec, "too_large", ""))
		m := message(topic, "shop/hash", note.ID("0a1b2c3d").String())
		m.Op = note.Op.String()
		return m
	}
	for _, test := range []struct {
		name  string
		batch func(failing, other string) []sink.Message
		early int // how many of the other topic's messages may be there
	}{
		{"a newer state of the object", func(failing, other string) []sink.Message {
			return []sink.Message{of(other, "5", change.Added), of(failing, "6", change.Updated), of(other, "7", change.Updated)}
		}, 1},
		{"another history's state of the object", func(failing, other string) []sink.Message {
			restored := of(other, "7", change.Updated)
			restored.ID = "0a1b2c3d.x" + strings.TrimPrefix(restored.ID, "0a1b2c3d")
			return []sink.Message{of(failing, "6", change.Updated), restored}
		}, 0},
		{"the note of a newer state", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Updated), of(other, "7", change.Gap)}
		}, 0},
		{"a state after a note that names no object", func(failing, other string) []sink.Message {
			return []sink.Message{hashed(failing), of(other, "7", change.Updated)}
		}, 0},
		{"a note that names no object", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Updated), hashed(other)}
		}, 0},
		{"the end of a snapshot", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Replaced), frame(other, "nodes", change.SnapshotEnd),
				frame(other, "pods", change.SnapshotEnd)}
		}, 1},
		{"a gap", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Updated), frame(other, "nodes", change.Gap),
				frame(other, "pods", change.Gap)}
		}, 1},
		{"what is resolved", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Updated), frame(other, "pods", change.Resolved)}
		}, 0},
		{"the begin of a snapshot", func(failing, other string) []sink.Message {
			return []sink.Message{of(failing, "6", change.Updated), frame(other, "pods", change.SnapshotBegin)}
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := testOptions(t, cluster, 2)
			options.Partitions = 1
			s := opened(t, options)
			mark := mustWrite(t, s, append(messagesOf(options.Topics[0], 1), messagesOf(options.Topics[1], 1)...))
			failing := s.topics[options.Topics[0]].partitions[0]
			right := failing.sequence
			failing.sequence += 5 // as if the broker had lost something
			batch := test.batch(options.Topics[0], options.Topics[1])
			if _, err := s.Write(t.Context(), batch); err == nil {
				t.Fatal("Write over a gap in the sequences succeeded")
			}
			if found := storedIDs(t, cluster, options.Topics[1])[1:]; len(found) > test.early {
				t.Errorf("in the log is %q, and what comes before that is not", found)
			}
			failing.sequence, s.sender.lost = right, nil
			if _, _, err := rewrite(t, s, mark, batch); err != nil {
				t.Fatal(err)
			}
			sameSet(t, "the logs", storedIDs(t, cluster, options.Topics...), append(idsOf(batch), "id-0", "id-0"))
		})
	}
}

// TestStepsAreFew: what need not wait is written beside the others, and a transaction is in the log as a whole.
func TestStepsAreFew(t *testing.T) {
	cluster := broker.Get(t)
	for delivery, want := range map[string]int{Idempotent: 3, Transactional: 1} {
		options := testOptions(t, cluster, 3)
		options.Delivery = delivery
		s := opened(t, options)
		var batch []sink.Message
		add := func(topic int, key, id string) { batch = append(batch, message(options.Topics[topic], key, id)) }
		for i := range 20 {
			key := string(rune('a' + i))
			add(0, key, "c/pods/n/"+key+"/u/1/added")
			add(1, key, "c/pods/n/"+key+"/u/2/updated")
			add(2, key, "c/nodes//"+key+"/u/3/added")
		}
		for _, resource := range []string{"nodes", "pods"} {
			add(2, "/snapshot.end", "c/"+resource+"////9/snapshot.end/s-1")
			batch[len(batch)-1].Op = "snapshot.end"
		}
		p, rejected, err := s.sender.plan(t.Context(), batch)
		if rejected != nil || err != nil || p.steps != want {
			t.Errorf("%s: %d steps, %v, %v; want %d", delivery, p.steps, rejected, err, want)
		}
		var sent []int32
		for step := range p.steps {
			for _, to := range p.touched {
				sent = append(sent, p.part(step, to)...)
			}
		}
		if slices.Sort(sent); len(sent) != len(batch) || len(slices.Compact(sent)) != len(batch) {
			t.Errorf("%s: of %d messages are sent %v", delivery, len(batch), sent)
		}
	}
}
