package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// send sends the plan step by step.
func (s *sender) send(ctx context.Context, p plan) error {
	for step := range p.steps {
		if err := s.sendStep(ctx, p, step); err != nil {
			return err
		}
	}
	return s.catalog.inspectOthers(ctx, p.touched)
}

// sendStep writes to all partitions, many at once. The first failure ends all of them; what they have written by then,
// Open finds.
func (s *sender) sendStep(ctx context.Context, p plan, step int) error {
	var lanes []*lane
	for _, to := range p.touched {
		part := p.part(step, to)
		for _, at := range part {
			s.speakOf(&p.messages[at])
		}
		if len(part) > 0 {
			lanes = append(lanes, &lane{sender: s, partition: to, rest: part, messages: p.messages, most: s.tuning.records})
		}
	}
	for len(lanes) > 0 {
		if err := s.sendRound(ctx, lanes[:min(len(lanes), s.tuning.parallel)]); err != nil {
			return err
		}
		lanes = slices.DeleteFunc(lanes, func(l *lane) bool { return len(l.rest) == 0 })
	}
	return nil
}

// sendRound sends the next batch of each lane: in requests that they share, and alone where that has failed.
func (s *sender) sendRound(ctx context.Context, lanes []*lane) error {
	_ = together(ctx, s.tuning.parallel, lanes, func(_ context.Context, l *lane) error { // which has no error
		l.freeze()
		l.request = s.requestOf(l.partition)
		return nil
	})
	var shared []*wire.ProduceRequest
	for _, l := range lanes {
		shared = append(shared, l.request)
	}
	_ = s.lingering(ctx, func(ctx context.Context) error { // errors are the batches' own
		s.cluster.ProduceAll(ctx, shared, s.tuning.bytes)
		return nil
	})
	return together(ctx, s.tuning.parallel, lanes, func(ctx context.Context, l *lane) error { return l.conclude(ctx) })
}

// requestOf is for the partition's frozen batch.
func (s *sender) requestOf(p *partition) *wire.ProduceRequest {
	p.frozen.sent++
	request := &wire.ProduceRequest{Topic: p.topic.name, Partition: p.number, Batch: p.frozen.bytes}
	if s.options.Delivery == Transactional {
		request.TransactionalID = s.options.TransactionalID
	}
	return request
}

// headerOffsets is, of what is resolved in a topic of frames, the offset of each partition of the topic of the objects
// before which everything is.
const headerOffsets = "kubecdc-offsets"

// speakOf gives it to the message, when all before that is durable.
func (s *sender) speakOf(m *sink.Message) {
	name, isAside := strings.CutSuffix(m.Destination, sink.FramesSuffix)
	t := s.known.topics[name]
	if m.Op != isResolved || !isAside || t == nil || m.Headers != nil && m.Headers[len(m.Headers)-1].Name == headerOffsets {
		return
	}
	offsets := make([]int64, len(t.partitions))
	for i, p := range t.partitions {
		offsets[i] = p.next
	}
	text, _ := json.Marshal(map[string][]int64{name: offsets}) // of numbers and a text it cannot fail
	m.Headers = append(slices.Clip(m.Headers), sink.Header{Name: headerOffsets, Value: string(text)})
}

// lane writes the messages of one partition, one batch after the other (I3).
type lane struct {
	sender    *sender
	partition *partition
	messages  []sink.Message
	rest      []int32 // of the partition's messages: what is not durable yet
	most      int     // records of a batch
	request   *wire.ProduceRequest
	record    batch.Record
}

// conclude makes a batch durable that was sent, or cuts it smaller.
func (l *lane) conclude(ctx context.Context) error {
	n := l.partition.frozen.count
	err := l.sender.transmit(ctx, l.partition, l.request)
	switch {
	case refused(err):
		return l.refused(err)
	case err != nil:
		return l.sender.catalog.forbidden(l.partition.topic.name, err)
	}
	l.rest = l.rest[n:]
	return nil
}

// freeze encodes the next batch.
func (l *lane) freeze() {
	e := <-l.sender.encoders
	defer l.sender.encoders.done(e)
	p := l.partition
	limit := min(int(p.topic.limit.Load()), l.sender.tuning.bytes)
	for i := 0; i < len(l.rest); {
		end, size := l.atom(i)
		if i > 0 && (e.Size()+size > limit || end > l.most) {
			break
		}
		for ; i < end; i++ {
			e.Add(fill(&l.record, &l.messages[l.rest[i]]))
		}
	}
	next, _ := l.sender.spare.Get().(*frozen)
	if next == nil {
		next = new(frozen)
	}
	next.count, next.since, next.sent = e.Count(), l.sender.now(), 0
	next.bytes = e.Finish(next.bytes, batch.Producer{
		ID: l.sender.right.producer.ID, Epoch: l.sender.right.producer.Epoch, Sequence: p.sequence, Transactional: l.sender.options.Delivery == Transactional,
	})
	p.frozen = next
}

// atom is where the messages that belong to the one at i end, and what they take.
func (l *lane) atom(i int) (end, size int) {
	first := int(l.rest[i])
	atom := l.messages[first:atomEnd(l.messages, first)]
	return i + len(atom), sizeBound(atom)
}

// refused halves the batch until one message stands alone. Other partitions are on their way meanwhile, so the message
// cannot be rejected now as the contract wants it: it is remembered, and the Write after the next Open rejects it
// before it sends anything.
func (l *lane) refused(err error) error {
	p := l.partition
	size, count := len(p.frozen.bytes), p.frozen.count
	p.frozen = nil
	reason := "invalid"
	if wire.Classify(err) == wire.TooLarge {
		reason = "too_large"
		p.topic.shrink(size)
	}
	if end, _ := l.atom(0); count > end {
		l.most = max(end, count/2)
		return nil
	}
	s := l.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &l.messages[l.rest[0]]
	s.refused[m.ID] = &sink.RejectedError{Reason: reason, Err: wire.Explain(err)}
	return reopen("write %s to topic %s: %w: open the sink again", m.ID, p.topic.name, err)
}

// transact makes the planned messages one transaction. After an error it is left to the next Open, which aborts what
// was not committed and finds what was: a batch of a transaction that has ended must not be sent again, it would spoil
// the sequence of the partition.
func (s *sender) transact(ctx context.Context, p plan) error {
	s.right.inTx = true
	err := s.right.join(ctx, "begin a transaction", p.touched, func(to *partition) error { return s.loses(to, deleted) })
	if err == nil {
		err = s.send(ctx, p)
	}
	if err == nil {
		err = s.persist(ctx, "commit a transaction", func(ctx context.Context) error {
			return s.cluster.EndTransaction(ctx, s.right.tx(), true)
		})
	}
	if err == nil {
		s.right.inTx = false
		return nil
	}
	if answer, is := errors.AsType[*wire.Error](err); is {
		err = s.catalog.forbidden(answer.Topic, err)
	}
	if decided(err) || ctx.Err() != nil {
		return err
	}
	return reopen("write to kafka with transactional id %s: %w: open the sink again", s.options.TransactionalID, err)
}

// sender sorts messages by partition, and makes batches durable, one at a time in each.
type sender struct {
	*brokers
	known    *known
	catalog  *catalog
	right    *right
	encoders encoders
	spare    sync.Pool        // of *frozen, for their memory
	turn     uint64           // counts the plans
	last     map[string]place // of the plan

	mu sync.Mutex // guards the following, which the goroutines of a Write share
	// by message id: what a broker has refused, and the next Write rejects
	refused map[string]*sink.RejectedError
	lost    *sink.LostError // what a log lacks, for the next Open to tell
}

// transmit sends the partition's frozen batch until it is durable, after a request that it was in, or nil.
func (s *sender) transmit(ctx context.Context, p *partition, request *wire.ProduceRequest) error {
	if request != nil && request.Err == nil {
		return s.acknowledged(p, request.Offset)
	}
	verb := "write to " + p.String()
	isGone := s.absence()
	err := s.persist(ctx, verb, func(ctx context.Context) error {
		if s.now().Sub(p.frozen.since) > s.tuning.resend {
			p.frozen = nil // the broker may have forgotten that it has it
			return reopen("%s: no answer for more than %s: open the sink again, to see what the log holds", verb, s.tuning.resend)
		}
		if request == nil {
			request = s.requestOf(p)
			s.cluster.ProduceAll(ctx, []*wire.ProduceRequest{request}, 0)
		}
		offset, err := request.Offset, request.Err
		request = nil
		switch {
		case err == nil:
			return s.acknowledged(p, offset)
		case wire.Code(err) == kerr.OutOfOrderSequenceNumber.Code:
			// With one batch at a time, the broker lacks the one before (measured: after an unclean leader election).
			// A transaction's epoch may be over instead, which the next Open finds out.
			p.frozen = nil
			if s.options.Delivery == Idempotent {
				return s.loses(p, "an earlier offset")
			}
		case wire.Code(err) == kerr.UnknownTopicOrPartition.Code && isGone(ctx, p.topic):
			p.frozen = nil
			return s.loses(p, deleted)
		}
		return err
	})
	if err != nil && !decided(err) && ctx.Err() == nil && !refused(err) {
		return &reopenError{err}
	}
	return err
}

// acknowledged moves the partition behind its frozen batch, which is durable at the offset.
func (s *sender) acknowledged(p *partition, offset int64) error {
	acked, markers := p.frozen, int64(0) // that a Write leaves after what it has written
	if p.frozen = nil; acked.sent == 1 { // else a connection that was given up may still read it
		s.spare.Put(acked)
	}
	// A batch can only be after those before it: if it is not, the log is another one than had them (I4).
	if offset < p.next {
		return s.loses(p, fmt.Sprintf("offset %d", offset))
	}
	if s.options.Delivery == Transactional {
		markers = 1
	}
	p.strange(p.next, offset, markers)
	p.next, p.sequence = offset+int64(acked.count), batch.NextSequence(p.sequence, acked.count)
	return nil
}

// deleted is what is left of a log then.
const deleted = "no offset: the topic was deleted"

// loses notes that a log lacks what it had acknowledged, for the next Open to tell.
func (s *sender) loses(p *partition, have string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = &sink.LostError{Log: p.String(), Want: fmt.Sprintf("offset %d", p.next), Have: have}
	return reopen("write to kafka: %w: open the sink again", s.lost)
}

// settle makes durable what an earlier Write left in doubt, under the same sequence. What comes late of its requests
// is then a second copy, which the broker knows; were it left alone, it would come after what Open reads.
func (s *sender) settle(ctx context.Context) error {
	if s.options.Delivery == Transactional {
		return nil // a new epoch refuses what comes late
	}
	for _, p := range s.known.partitions() {
		if p.frozen == nil {
			continue
		}
		err := s.transmit(ctx, p, nil)
		if errors.As(err, new(*reopenError)) || refused(err) || refusesTopic(err) && s.catalog.isChosen(p.topic.name) {
			p.frozen, err = nil, nil // it is not in the log, or cannot be told apart: the tail says which
		}
		if err != nil {
			return err
		}
	}
	return nil
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
