package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var (
	errNothingRead  = errors.New("a fetch before the end of the log brought nothing")
	errUnreplicated = errors.New("the leader has records that are not replicated yet: if that lasts, start the brokers that are down")
	errThrottled    = errors.New("the quota of this client is used up, and the broker asks to wait: if that lasts, raise producer_byte_rate of the user or of client id kubecdc")
	errUndecided    = errors.New("the last transaction has no marker yet: if that lasts, start the brokers that are down")
)

// tail reads what one partition holds behind a mark.
//
// It reads all that is replicated and decides about transactions by their markers, which follow them in the log. A
// reader of committed records would stop before the first open transaction, also a stranger's, and miss what is behind
// it; ours is over when the tail is read (enroll).
type tail struct {
	sink      *Sink
	partition *partition
	from      int64                 // where to read, or to go on
	each      func(id string) error // takes the ids
	open      map[int64][]string    // by producer: ids of a transaction whose marker has not come
	decoder   *batch.Decoder
}

// read gives the ids to each, once.
func (t *tail) read(ctx context.Context) error {
	verb := fmt.Sprintf("read topic %s partition %d", t.partition.topic.name, t.partition.number)
	err := t.sink.persist(ctx, verb, t.attempt)
	if wire.Code(err) == codeTopicForbidden {
		t.sink.unreadable(err)
		return nil
	}
	t.decoder, t.open = nil, nil
	return err
}

// attempt reads on from where the last one failed, up to where the log ended when the sink was opened.
func (t *tail) attempt(ctx context.Context) error {
	ends, err := t.sink.ends(ctx, t.partition.topic)
	if err != nil {
		return err
	}
	if t.open == nil {
		t.open, t.decoder = map[int64][]string{}, batch.NewDecoder(t.sink.tuning.contents)
	}
	t.from = max(t.from, ends[t.partition.number].First) // retention may have moved the start
	for t.from < t.partition.next {
		if t.from, err = t.step(ctx, t.from); err != nil {
			return unforbidden(err)
		}
	}
	if len(t.open[t.sink.producer.ID]) > 0 {
		return errUndecided
	}
	return nil
}

// unforbidden keeps that reading is not permitted from ending the run.
func unforbidden(err error) error {
	if wire.Code(err) == codeTopicForbidden {
		return &reopenError{err}
	}
	return err
}

// step reads what one fetch brings, and returns where to go on.
func (t *tail) step(ctx context.Context, offset int64) (int64, error) {
	result, err := t.sink.cluster.Fetch(ctx, wire.FetchRequest{
		Topic: t.partition.topic.name, Partition: t.partition.number, Offset: offset, MaxBytes: t.sink.tuning.fetch,
	})
	if err != nil {
		return offset, err
	}
	before := offset
	for data := result.Records; offset < t.partition.next; {
		b, rest, err := batch.Read(data)
		if err != nil {
			return offset, t.damaged(err)
		}
		if b == nil {
			break
		}
		data = rest
		if b.End() <= offset {
			continue // a fetch begins with the whole batch that holds its offset, or with one before it
		}
		if err := t.take(b, offset); err != nil {
			return offset, err
		}
		offset = b.End() // also behind a batch without records
	}
	if offset == before {
		return offset, errNothingRead
	}
	return offset, nil
}

// take keeps the ids of a batch. A record without one is not ours.
func (t *tail) take(b *batch.Batch, from int64) error {
	if b.Control {
		return t.decide(b)
	}
	var ids []string
	err := t.decoder.Each(b, func(e *batch.Entry) error {
		if id, found := e.Header(sink.HeaderID); found && len(id) > 0 && e.Offset >= from {
			ids = append(ids, string(id))
		}
		return nil
	})
	if b.Producer.Transactional {
		t.open[b.Producer.ID] = append(t.open[b.Producer.ID], ids...)
	} else {
		return errors.Join(t.damaged(err), t.keep(ids))
	}
	return t.damaged(err)
}

func (t *tail) decide(b *batch.Batch) error {
	committed, known, err := t.decoder.Committed(b)
	if err != nil || !known {
		return t.damaged(err)
	}
	if committed {
		err = t.keep(t.open[b.Producer.ID])
	}
	delete(t.open, b.Producer.ID)
	return err
}

func (t *tail) keep(ids []string) error {
	for _, id := range ids {
		if err := t.each(id); err != nil {
			return &reopenError{err} // no broker's fault, so no reason to read again
		}
	}
	return nil
}

// damaged is for bytes that are no log: reading them again brings the same.
func (t *tail) damaged(err error) error {
	if err == nil {
		return nil
	}
	return permanent("read topic %s partition %d: %w: the log is damaged, or too large when decompressed: move the partition's leader to another replica, or begin with an empty topic",
		t.partition.topic.name, t.partition.number, err)
}

// ends asks for the ends of all partitions of a topic, when all that their leaders have is replicated: a record of a
// crash that a reader cannot see yet would be written again, and come up all the same.
func (s *Sink) ends(ctx context.Context, t *topic) (map[int32]wire.Bounds, error) {
	numbers := make([]int32, len(t.partitions))
	for i := range numbers {
		numbers[i] = int32(i)
	}
	logs, err := s.cluster.LogEnds(ctx, t.name, numbers)
	for wait := newBackOff(); err == nil && wait.GetElapsedTime() < s.tuning.replication; pause(ctx, wait.NextBackOff()) {
		var seen map[int32]wire.Bounds
		if seen, err = s.cluster.Bounds(ctx, t.name, numbers, false); err == nil && reached(seen, logs) {
			return seen, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("read the ends of topic %s: %w", t.name, errUnreplicated)
	}
	return nil, err
}

func reached(seen map[int32]wire.Bounds, logs map[int32]int64) bool {
	for number, end := range logs {
		if seen[number].End < end {
			return false
		}
	}
	return true
}

// unreadable tells once that a tail cannot be read. The sink goes on: what a crash left there comes a second time, with
// the same id.
func (s *Sink) unreadable(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread {
		return
	}
	s.unread = true
	s.options.Retry("read_denied", fmt.Errorf("%w: allow READ on the topic: after a crash, records may come twice, with the same id", err))
}
