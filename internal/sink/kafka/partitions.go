package kafka

import (
	"context"
	"fmt"
)

// keep takes as many of the topic's partitions as it was written with from the start, as the mark says, or what this
// sink knows of it. Were keys spread over partitions that were added later, an object would go on in another one,
// behind its older states for nobody, and its tombstones would not reach them. Nothing is kept of a topic that was made
// again.
func (s *Sink) keep(t *topic, want *mark) {
	n := 0
	if known := s.topics[t.name]; known != nil && known.id == t.id {
		n, t.made = len(known.partitions), t.made || known.made
	}
	if want != nil {
		if marked := want.Topics[t.name]; marked.ID == t.id || marked.ID == "" || t.id == "" {
			t.made = t.made || marked.Made
			if len(marked.Next) > 0 {
				n = len(marked.Next)
			}
		}
	}
	s.grown(t, len(t.partitions), n)
	if n > 0 && n < len(t.partitions) {
		t.partitions = t.partitions[:n:n]
	}
}

// grown tells once that partitions were added, which stay empty.
func (s *Sink) grown(t *topic, have, used int) {
	if used == 0 || have <= used || s.told[t.name] == have {
		return
	}
	s.told[t.name] = have
	s.options.Notice(fmt.Sprintf("keeps to the first %d of the %d partitions of topic %s, those that it began with, since objects that moved to others would lose their order and their tombstones: "+
		"docs/kafka.md says how to use them all", used, have, t.name))
}

// look notices, from time to time, that partitions are added while the sink is open. Where nobody answers, it looks
// later.
func (s *Sink) look(ctx context.Context) {
	if s.now().Sub(s.looked) < s.tuning.look {
		return
	}
	s.looked = s.now()
	counts, err := s.cluster.Partitions(ctx, s.names)
	if err != nil {
		return // whoever writes finds out more
	}
	for name, n := range counts {
		if t := s.topics[name]; t != nil {
			s.grown(t, n, len(t.partitions))
		}
	}
}
