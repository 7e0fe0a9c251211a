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

// plan sorts the messages by partition. It finds what would be rejected before anything is sent, since partitions do
// not wait for each other, and nothing behind a rejected message may be written.
func (s *Sink) plan(ctx context.Context, messages []sink.Message) (plan, *sink.RejectedError, error) {
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

// atomEnd is the end of the messages that belong together: those of one id, such as a delete and its tombstone. They
// are stored in one batch, so the log has all of them or none.
func atomEnd(messages []sink.Message, i int) int {
	end := i + 1
	for end < len(messages) && together(&messages[i], &messages[end]) {
		end++
	}
	return end
}

func together(a, b *sink.Message) bool {
	return a.ID == b.ID && a.Destination == b.Destination && string(a.Key) == string(b.Key)
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

// endsSnapshot is change.SnapshotEnd as text.
const endsSnapshot = "snapshot.end"

// waits says whether the message must not be in the log before all that precedes it in the topic. A consumer that finds
// the end of a snapshot then finds the snapshot, in whatever partitions. A transaction is in the log as a whole anyway.
func (s *Sink) waits(t *topic, m *sink.Message) bool {
	return m.Op == endsSnapshot && len(t.partitions) > 1 && s.options.Delivery == Idempotent
}

func (p *plan) end(t *topic, index int) {
	if p.ends == nil {
		p.ends = map[*topic][]int32{}
	}
	p.ends[t] = append(p.ends[t], int32(index))
}

// place finds the topic of an atom, which is mostly that of the one before, and what speaks against writing it.
func (s *Sink) place(ctx context.Context, t **topic, atom []sink.Message) (*refusal, error) {
	if name := atom[0].Destination; *t == nil || (*t).name != name {
		found, no, err := s.topicOf(ctx, name)
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

// topicOf is the topic of the name. One that is none of Options.Topics is made or looked up now, or speaks against its
// messages.
func (s *Sink) topicOf(ctx context.Context, name string) (*topic, *refusal, error) {
	if t := s.topics[name]; t != nil {
		return t, nil, nil
	}
	if err := validTopic(name); err != nil {
		return nil, &refusal{reason: "invalid", err: err, noPlace: true}, nil
	}
	if no := s.closedTopic(name); no != nil {
		return nil, no, nil
	}
	t, err := s.find(ctx, name)
	switch {
	case refusesTopic(err) && s.chosen(name):
		s.close(name, err)
		return nil, s.closedTopic(name), nil
	case err != nil:
		return nil, nil, err
	}
	s.learn(t)
	s.fenced = false
	s.options.Made(s.made())
	return t, nil, nil
}

// find makes sure of a topic that was not known when the sink was opened.
func (s *Sink) find(ctx context.Context, name string) (t *topic, err error) {
	err = s.persist(ctx, "open topic "+name, func(ctx context.Context) error {
		if t, err = s.ensure(ctx, name); err != nil {
			return err
		}
		return s.locateOne(ctx, t)
	})
	if err == nil {
		err = s.inspectAll(ctx, t)
	}
	return t, err
}

// oversize compares the atom with the topic's limit, which is one for batches as they are sent. Only what is too large
// without compression needs to be compressed to know.
func (s *Sink) oversize(t *topic, atom []sink.Message) (*refusal, error) {
	limit := int(t.limit.Load())
	bound := batch.HeaderSize
	for i := range atom {
		bound += sizeBound(&atom[i])
	}
	if bound <= limit {
		return nil, nil
	}
	size, err := s.measure(atom)
	if err != nil || size <= limit {
		return nil, err
	}
	return &refusal{reason: "too_large", err: fmt.Errorf("a batch of %d bytes, and topic %s takes %d: raise max.message.bytes of the topic",
		size, t.name, limit)}, nil
}

// measure is the size of a batch with nothing but the atom.
func (s *Sink) measure(atom []sink.Message) (int, error) {
	e, err := s.encoder()
	if err != nil {
		return 0, err
	}
	defer s.done(e)
	var r record
	for i := range atom {
		e.Add(r.fill(&atom[i]))
	}
	b, err := e.Finish(nil, batch.Producer{})
	return len(b), err
}

// record is a message as package batch wants it, made again for each one in the same memory.
type record struct {
	record  batch.Record
	headers []batch.Header
}

// fill gives a message without a key an empty one: it belongs to the same partition, and a compacted topic takes no
// record without a key.
func (r *record) fill(m *sink.Message) *batch.Record {
	r.headers = append(r.headers[:0],
		batch.Header{Name: sink.HeaderID, Value: m.ID},
		batch.Header{Name: sink.HeaderOp, Value: m.Op},
		batch.Header{Name: sink.HeaderResourceVersion, Value: m.ResourceVersion},
	)
	for _, h := range m.Headers {
		r.headers = append(r.headers, batch.Header(h))
	}
	key := m.Key
	if key == nil {
		key = []byte{}
	}
	r.record = batch.Record{Key: key, Value: m.Value, Headers: r.headers, Timestamp: max(0, m.Time.UnixMilli())}
	return &r.record
}

// sizeBound is at least what the message takes in a batch.
func sizeBound(m *sink.Message) int {
	const numbers = 64 // of a record and its first three headers
	n := numbers + len(sink.HeaderID) + len(sink.HeaderOp) + len(sink.HeaderResourceVersion) +
		len(m.ID) + len(m.Op) + len(m.ResourceVersion) + len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += 10 + len(m.Headers[i].Name) + len(m.Headers[i].Value)
	}
	return n
}

// encoder waits for one that nobody uses.
func (s *Sink) encoder() (*batch.Encoder, error) {
	e := <-s.encoders
	if e != nil {
		return e, nil
	}
	e, err := batch.NewEncoder(s.codec)
	if err != nil {
		s.encoders <- nil
	}
	return e, err
}

func (s *Sink) done(e *batch.Encoder) {
	e.Reset()
	s.encoders <- e
}
