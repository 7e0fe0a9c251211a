package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

// plan is one batch of the contract, sorted by partition. Its partitions are written side by side. What proves to a
// reader of the log that something else is there waits until that is durable: it goes in a later step.
type plan struct {
	messages []sink.Message
	touched  []*partition // each has the indexes of its messages, and the step that each is sent in
	steps    int
	floor    int              // the first step that the next message may be in
	last     map[string]place // by object: where its last message goes; nil is that no message waits
}

// place is where a message goes, and in which step.
type place struct {
	partition *partition
	step      int
}

// part is what of the partition's messages a step sends.
func (p *plan) part(step int, of *partition) []int32 {
	from, _ := slices.BinarySearch(of.steps, int32(step))
	until, _ := slices.BinarySearch(of.steps, int32(step+1))
	return of.indexes[from:until]
}

// add adds an atom to the partition.
func (p *plan) add(to *partition, from, end int) {
	step := p.step(&p.messages[from], to)
	for i := from; i < end; i++ {
		to.indexes, to.steps = append(to.indexes, int32(i)), append(to.steps, int32(step))
	}
	p.steps = max(p.steps, step+1)
}

// The operations that matter here, as texts of package change.
const (
	isGap      = "gap"
	isActor    = "actor"
	isResolved = "resolved"
)

// namedByHash is in the id of a note of which nobody can tell whose it is (change.ShorterNote).
const namedByHash = "/%25sha256-"

// step is the step that the message, which goes to the partition, is sent in.
func (p *plan) step(m *sink.Message, to *partition) int {
	if p.last == nil {
		return 0
	}
	step := p.floor
	if n := len(to.steps); n > 0 {
		step = max(step, int(to.steps[n-1]))
	}
	object := m.Object()
	switch {
	case m.Op == isActor:
	case m.Op == isGap && strings.Contains(m.ID, namedByHash):
		step = p.steps
		p.floor = step + 1
	case strings.HasSuffix(object, "//"): // a frame
		step = max(step, p.behind(object, to))
	default:
		if before, found := p.last[object]; found && before.partition != to {
			step = max(step, before.step+1)
		}
		p.last[object] = place{to, step}
	}
	return step
}

// behind is the first step after all that the other partitions get of the frame's resource. A consumer that finds the
// end of a snapshot then finds the snapshot, in whatever topics. A gap and the begin of a snapshot move the sink's
// position, so recovery asks for nothing older.
func (p *plan) behind(frame string, to *partition) (step int) {
	resource := frame[:strings.IndexByte(frame, '/')+1]
	for _, of := range p.touched {
		for i := len(of.indexes) - 1; i >= 0 && of != to; i-- {
			if strings.HasPrefix(p.messages[of.indexes[i]].Object(), resource) {
				step = max(step, int(of.steps[i])+1)
				break
			}
		}
	}
	return step
}

// plan sorts the messages by partition. It finds what would be rejected before anything is sent, since partitions do
// not wait for each other, and nothing after a rejected message may be written.
func (s *sender) plan(ctx context.Context, messages []sink.Message) (plan, *sink.RejectedError, error) {
	p := plan{messages: messages}
	resolves := func(m sink.Message) bool { return m.Op == isResolved }
	if s.options.Delivery == Idempotent || slices.ContainsFunc(messages, resolves) { // a transaction is in the log as a whole
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
			here := *no
			here.Index = i
			return p, &here, nil
		}
		if err := s.catalog.sameSchema(t, &messages[i]); err != nil {
			return p, nil, err
		}
		for _, to := range t.partitionsOf(&messages[i]) {
			if to.turn != s.turn {
				s.start(to)
				p.touched = append(p.touched, to)
			}
			p.add(to, i, end)
		}
		i = end
	}
	return p, nil, nil
}

// start makes the partition one of the plan, which has nothing of it yet.
func (s *sender) start(p *partition) {
	p.turn, p.indexes, p.steps = s.turn, p.indexes[:0], p.steps[:0]
}

// place finds the topic of an atom, which is mostly that of the one before, and what speaks against writing it.
func (s *sender) place(ctx context.Context, t **topic, atom []sink.Message) (*sink.RejectedError, error) {
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
	// The limit is one for batches as they are sent: what is too large must be compressed to know.
	limit := int((*t).limit.Load())
	if batch.HeaderSize+sizeBound(atom) <= limit {
		return nil, nil
	}
	size := s.encoders.measure(atom)
	if size <= limit {
		return nil, nil
	}
	return &sink.RejectedError{Reason: "too_large", Err: fmt.Errorf("a batch of %d bytes, and topic %s takes %d: raise max.message.bytes of the topic",
		size, (*t).name, limit)}, nil
}
