package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

// plan is one batch of the contract, sorted by partition.
type plan struct {
	messages []sink.Message
	touched  []*partition // each has the indexes of its messages
	// ends are, by topic, the indexes of messages that end a snapshot, in an order that partitions would not keep.
	ends map[*topic][]int32
}

// steps is in how many steps the plan is sent: an end of a snapshot waits for all that is before it in its topic.
func (p *plan) steps() int {
	most := 1
	for _, ends := range p.ends {
		most = max(most, len(ends)+1)
	}
	return most
}

// part is what of the partition's messages a step sends.
func (p *plan) part(step int, of *partition) []int32 {
	ends := p.ends[of.topic]
	if step > len(ends) {
		return nil
	}
	from, until := 0, len(of.indexes)
	if step > 0 {
		from, _ = slices.BinarySearch(of.indexes, ends[step-1])
	}
	if step < len(ends) {
		until, _ = slices.BinarySearch(of.indexes, ends[step])
	}
	return of.indexes[from:until]
}

func (p *plan) add(to *partition, turn uint64, from, end int) {
	if to.turn != turn {
		to.turn, to.indexes = turn, to.indexes[:0]
		p.touched = append(p.touched, to)
	}
	for i := from; i < end; i++ {
		to.indexes = append(to.indexes, int32(i))
	}
}

func (p *plan) end(t *topic, index int) {
	if p.ends == nil {
		p.ends = map[*topic][]int32{}
	}
	p.ends[t] = append(p.ends[t], int32(index))
}

// planner sorts messages by partition.
type planner struct {
	options  *Options
	catalog  *catalog
	encoders *encoders
	turn     uint64              // counts the plans
	refused  map[string]*refusal // by message id: what a broker has refused, and the next Write rejects
}

// endsSnapshot is change.SnapshotEnd as text.
const endsSnapshot = "snapshot.end"

// plan sorts the messages by partition. It finds what would be rejected before anything is sent, since partitions do
// not wait for each other, and nothing after a rejected message may be written.
func (s *planner) plan(ctx context.Context, messages []sink.Message) (plan, *sink.RejectedError, error) {
	p := plan{messages: messages}
	s.turn++
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
		p.add(t.partitionOf(messages[i].Key), s.turn, i, end)
		if s.waits(t, &messages[i]) {
			p.end(t, i)
		}
		i = end
	}
	return p, nil, nil
}

// waits says whether the message must not be in the log before all that precedes it in the topic. A consumer that finds
// the end of a snapshot then finds the snapshot, in whatever partitions. A transaction is in the log as a whole anyway.
func (s *planner) waits(t *topic, m *sink.Message) bool {
	return m.Op == endsSnapshot && len(t.partitions) > 1 && s.options.Delivery == Idempotent
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
