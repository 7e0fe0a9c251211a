package kafka

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// mark is a place in each of the topics. A topic or a partition that it does not have was not there when it was made,
// so all that is in it came later.
type mark struct {
	Topics map[string]topicMark `json:"kafka"`
}

// topicMark has the offset of the next record, by partition.
type topicMark struct {
	ID   string `json:"id,omitempty"`   // Kafka's (KIP-516): a topic that is made again has another one
	Made bool   `json:"made,omitempty"` // by the sink, because data chose it
	// of as many partitions as are written to: those that are added later are left alone
	Next []int64 `json:"next"`
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

// mark is the place after all that is durable. It is as long as there are partitions, and made for every Write, so each
// topic keeps its part.
func (s *Sink) mark() sink.Mark {
	text := append(make([]byte, 0, s.markSize+64), `{"kafka":{`...)
	for i, name := range s.names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, s.topics[name].text()...)
	}
	text = append(text, `}}`...)
	s.markSize = len(text)
	return sink.Mark(text)
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

// learn adds a topic to those of the sink.
func (s *Sink) learn(t *topic) {
	if _, known := s.topics[t.name]; !known {
		i, _ := slices.BinarySearch(s.names, t.name)
		s.names = slices.Insert(s.names, i, t.name)
	}
	s.topics[t.name] = t
}
