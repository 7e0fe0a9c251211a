package kafka

import (
	"context"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

// planner sorts messages by partition.
type planner struct {
	options  *Options
	catalog  *catalog
	encoders *encoders
	turn     uint64              // counts the plans
	last     map[string]place    // of the plan
	refused  map[string]*refusal // by message id: what a broker has refused, and the next Write rejects
}

// plan sorts the messages by partition. It finds what would be rejected before anything is sent, since partitions do
// not wait for each other, and nothing after a rejected message may be written.
func (s *planner) plan(ctx context.Context, messages []sink.Message) (plan, *sink.RejectedError, error) {
	p := plan{messages: messages}
	if s.options.Delivery == Idempotent { // a transaction is in the log as a whole
		p.last = s.last
	}
	s.turn++
	defer clear(s.last) // the texts are the batch's
	var t *topic
	for i := 0; i < len(messages); {
		end := atomEnd(messages, i)
		no, err := s.place(ctx, &t, messages[i:end])
		if err != nil {
			return p, nil, err
		}
		if no != nil {
			return p, &sink.RejectedError{Index: i, Reason: no.reason, Err: no.err, NoPlace: no.noPlace}, nil
		}
		if err := s.catalog.sameSchema(t, &messages[i]); err != nil {
			return p, nil, err
		}
		to := t.partitionOf(&messages[i])
		if to.turn != s.turn {
			s.start(to)
			p.touched = append(p.touched, to)
		}
		p.add(to, i, end)
		i = end
	}
	return p, nil, nil
}

// begin starts a plan of the one partition.
func (s *planner) begin(p *partition) {
	s.turn++
	s.start(p)
}

// start makes the partition one of the plan, which has nothing of it yet.
func (s *planner) start(p *partition) {
	p.turn, p.indexes, p.steps = s.turn, p.indexes[:0], p.steps[:0]
}

// place finds the topic of an atom, which is mostly that of the one before, and what speaks against writing it.
func (s *planner) place(ctx context.Context, t **topic, atom []sink.Message) (*refusal, error) {
	if name := atom[0].Destination; *t == nil || (*t).name != name {
		found, no, err := s.catalog.of(ctx, name)
		if err != nil || no != nil {
			return no, err
		}
		*t = found
	}
	if no := s.refused[atom[0].ID]; no != nil {
		return no, nil
	}
	return s.oversize(*t, atom)
}

// oversize compares the atom with the topic's limit, which is one for batches as they are sent. Only what is too large
// without compression needs to be compressed to know.
func (s *planner) oversize(t *topic, atom []sink.Message) (*refusal, error) {
	limit := int(t.limit.Load())
	bound := batch.HeaderSize
	for i := range atom {
		bound += sizeBound(&atom[i])
	}
	if bound <= limit {
		return nil, nil
	}
	size, err := s.encoders.measure(atom)
	if err != nil || size <= limit {
		return nil, err
	}
	return &refusal{reason: "too_large", err: fmt.Errorf("a batch of %d bytes, and topic %s takes %d: raise max.message.bytes of the topic",
		size, t.name, limit)}, nil
}
