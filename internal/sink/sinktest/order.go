package sinktest

import "github.com/kubecdc/kubecdc/internal/sink"

// lanes are the sequences that a log promises to keep: one of all messages, or one for each key and destination.
type lanes struct {
	of   map[string]string   // message id -> lane
	left map[string][]string // lane -> ids that were not seen yet, oldest first, each once
	// again is how often an id may still come directly after itself: once less than it has messages.
	again map[string]int
	last  map[string]string // lane -> the id seen last
}

func (r *rig) lanes(messages []sink.Message) lanes {
	l := lanes{of: make(map[string]string, len(messages)), left: map[string][]string{}, again: map[string]int{}, last: map[string]string{}}
	for i := range messages {
		m := &messages[i]
		if m.Value == nil && r.env.SkipsTombstones {
			continue
		}
		lane := ""
		if r.env.Partitioned {
			lane = m.Destination + "\x00" + string(m.Key)
		}
		if _, there := l.of[m.ID]; there {
			l.again[m.ID]++
			continue
		}
		l.of[m.ID] = lane
		l.left[lane] = append(l.left[lane], m.ID)
	}
	return l
}

// undelivered is what of the messages is not among the ids and leaves something in the log. It fails unless the ids
// are a prefix of the messages, or, where the log is partitioned, a prefix of the messages of each key.
func (r *rig) undelivered(ids []string, messages []sink.Message) []sink.Message {
	r.Helper()
	l := r.lanes(messages)
	for i, id := range ids {
		lane, known := l.of[id]
		if !known {
			r.Fatalf("id %d of %d, %q, was not expected", i, len(ids), id)
		}
		if l.again[id] > 0 && l.last[lane] == id {
			l.again[id]--
			continue
		}
		if left := l.left[lane]; len(left) == 0 || left[0] != id {
			r.Fatalf("id %d of %d, %s, came twice or out of its order", i, len(ids), id)
		}
		l.left[lane], l.last[lane] = l.left[lane][1:], id
	}
	missing := map[string]bool{}
	for _, left := range l.left {
		for _, id := range left {
			missing[id] = true
		}
	}
	var rest []sink.Message
	for i := range messages {
		if missing[messages[i].ID] {
			rest = append(rest, messages[i])
		}
	}
	return rest
}

// same fails unless the ids are those of the messages, once each, in the order that the log promises.
func (r *rig) same(ids []string, want []sink.Message) {
	r.Helper()
	if rest := r.undelivered(ids, want); len(rest) > 0 {
		r.Fatalf("%d of %d messages are missing, the first is %s", len(rest), len(want), rest[0].ID)
	}
}
