package kafka

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// mark is a place in each of the topics. A topic or a partition that it does not have was not there when it was made,
// so all that is in it came later.
type mark struct {
	Topics map[string]topicMark `json:"kafka"`
	Form   json.RawMessage      `json:"form,omitempty"` // of topics and keys; nil is that of an earlier version
}

// topicMark has the offset of the next record, by partition.
type topicMark struct {
	ID   string `json:"id,omitempty"`   // Kafka's (KIP-516): a topic that is made again has another one
	Made bool   `json:"made,omitempty"` // by the sink, because data chose it
	// of as many partitions as are written to: those that are added later are left alone
	Next []int64 `json:"next"`
	// Schema is what keys begin with, where the topic is compacted and they have one.
	Schema uint32 `json:"schema,omitempty"`
	ByKey  bool   `json:"byKey,omitempty"` // keys with a schema choose the partition by all their bytes
}

// parseMark returns nil for the empty mark.
func parseMark(text sink.Mark) (*mark, error) {
	if text == "" {
		return nil, nil
	}
	var m mark
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Topics == nil {
		return nil, permanent("read mark %.200q: not a place in topics: the saved state belongs to another kind of sink", text)
	}
	for name, t := range m.Topics {
		t.ByKey = t.ByKey || len(m.Form) == 0
		m.Topics[name] = t
	}
	return &m, nil
}

// from is where the tail of a partition begins.
func (m *mark) from(name string, partition int32) int64 {
	if m == nil {
		return 0
	}
	if next := m.Topics[name].Next; int(partition) < len(next) {
		return next[partition]
	}
	return 0
}

// withTopics adds to the mark those of the topics that it does not have.
func withTopics(at sink.Mark, topics []*topic) (sink.Mark, error) {
	m, err := parseMark(at)
	if err != nil || m == nil {
		return at, err
	}
	for _, t := range topics {
		if _, has := m.Topics[t.name]; has {
			continue
		}
		more := topicMark{ID: t.id, Made: t.made, ByKey: t.byKey}
		for _, p := range t.partitions {
			more.Next = append(more.Next, p.next)
		}
		m.Topics[t.name] = more
	}
	text, err := json.Marshal(m)
	return sink.Mark(text), err
}

// text is a topic's part of the mark. Names of topics need no escape.
func (t *topic) text() []byte {
	if !t.moved && t.part != nil {
		return t.part
	}
	b := strconv.AppendQuote(t.part[:0], t.name)
	b = append(b, ':', '{')
	if t.id != "" {
		b = strconv.AppendQuote(append(b, `"id":`...), t.id)
		b = append(b, ',')
	}
	if t.made {
		b = append(b, `"made":true,`...)
	}
	if t.byKey {
		b = append(b, `"byKey":true,`...)
	}
	if t.schema != 0 {
		b = strconv.AppendUint(append(b, `"schema":`...), uint64(t.schema), 10)
		b = append(b, ',')
	}
	b = append(b, `"next":[`...)
	for i, p := range t.partitions {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, p.next, 10)
	}
	t.part, t.moved = append(b, ']', '}'), false
	return t.part
}

// known are the topics that the mark has.
type known struct {
	topics    map[string]*topic
	names     []string        // of them, sorted
	announced map[string]bool // those that the next Open reads, whatever becomes of this life
	markSize  int
	fresh     bool // one of them may not be fenced
	form      []byte
}

// learn adds a topic to those of the sink.
func (k *known) learn(t *topic) {
	if _, known := k.topics[t.name]; !known {
		i, _ := slices.BinarySearch(k.names, t.name)
		k.names = slices.Insert(k.names, i, t.name)
	}
	k.topics[t.name] = t
	k.fresh = k.fresh || !t.fenced
}

func (k *known) forget() { k.topics, k.names, k.fresh = map[string]*topic{}, nil, false }

// partitions are those of all topics, in the order of their names.
func (k *known) partitions() iter.Seq[*partition] {
	return func(yield func(*partition) bool) {
		for _, name := range k.names {
			for _, p := range k.topics[name].partitions {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// seen is the offset after the last record that a partition acknowledged to this sink.
func (k *known) seen(name string, partition int32) int64 {
	if t := k.topics[name]; t != nil && int(partition) < len(t.partitions) {
		return t.partitions[partition].next
	}
	return 0
}

// made is how many topics were made because data chose them.
func (k *known) made() (n int) {
	for _, t := range k.topics {
		if t.made {
			n++
		}
	}
	return n
}

// mark is the place after all that is durable. It is as long as there are partitions, and made for every Write, so each
// topic keeps its part.
func (k *known) mark() sink.Mark {
	text := append(make([]byte, 0, k.markSize+64), `{"kafka":{`...)
	for i, name := range k.names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, k.topics[name].text()...)
	}
	if text = append(text, '}'); len(k.form) > 0 {
		text = append(append(text, `,"form":`...), k.form...)
	}
	text = append(text, '}')
	k.markSize = len(text)
	return sink.Mark(text)
}
