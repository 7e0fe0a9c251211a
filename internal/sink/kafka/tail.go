package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// tails reads what the topics hold after a mark, or all that they hold.
type tails struct {
	*brokers
	known  *known
	right  *right
	unread atomic.Bool // it was told that reading is not permitted
	giving sync.Mutex  // one goroutine gives ids at a time, to who may save what they say
}

// delivered gives the ids after the mark, from all partitions, and names the topics in which keys end after it.
func (t *tails) delivered(ctx context.Context, want *mark, found func(id string)) (ended []string, err error) {
	each := func(id string) error {
		t.giving.Lock()
		defer t.giving.Unlock()
		found(id)
		return nil
	}
	var all []*tail
	for _, p := range t.known.partitions() {
		if from := want.from(p.topic.name, p.number); from < p.next {
			all = append(all, &tail{partition: p, from: from, each: each})
		}
	}
	err = together(ctx, t.tuning.readers, all, t.read)
	for _, of := range all {
		if of.ended > 0 {
			ended = append(ended, of.partition.topic.name)
		}
	}
	return ended, err
}

// all gives the ids of all partitions, one after the other. What lies in a table before the end of its keys is in it no
// more, though compaction may still leave it there.
func (t *tails) all(ctx context.Context, each func(id string) error) error {
	for _, p := range t.known.partitions() {
		over := &tail{partition: p, each: func(string) error { return nil }}
		if p.topic.compacted {
			if err := t.read(ctx, over); err != nil {
				return err
			}
		}
		if err := t.read(ctx, &tail{partition: p, from: over.ended, each: each}); err != nil {
			return err
		}
	}
	return nil
}

// tail reads what one partition holds after a mark.
//
// It reads all that is replicated and decides about transactions by their markers, which follow them in the log. A
// reader of committed records would stop before the first open transaction, also a stranger's, and miss what is behind
// it; ours is over when the tail is read (enroll).
type tail struct {
	partition *partition
	from      int64                 // where to read, or to go on
	each      func(id string) error // takes the ids
	found     undecided[string]
	ended     int64 // the offset after the last batch that ends keys
}

// read gives the ids of the partition, once, up to where the log ended when the sink was opened. Each attempt goes on
// from where the last one failed.
func (t *tails) read(ctx context.Context, of *tail) error {
	p := of.partition
	of.found = newUndecided[string](t.tuning)
	err := t.persist(ctx, "read "+p.String(), func(ctx context.Context) error {
		ends, err := t.ends(ctx, p.topic)
		if err != nil {
			return err
		}
		of.from = max(of.from, ends[p.number].First) // retention may have moved the start
		for of.from < p.next {
			result, err := t.cluster.Fetch(ctx, wire.FetchRequest{Topic: p.topic.name, Partition: p.number, Offset: of.from, MaxBytes: t.tuning.fetch})
			if err == nil {
				err = of.step(result.RecordBatches)
			}
			if err != nil {
				return err
			}
		}
		if len(of.found.open[t.right.producer.ID]) > 0 {
			return errUndecided
		}
		return nil
	})
	of.found = undecided[string]{}
	if wire.Code(err) != kerr.TopicAuthorizationFailed.Code {
		return err
	}
	// The sink goes on: what a crash left there comes a second time, with the same id.
	if answer, _ := errors.AsType[*wire.Error](err); !t.unread.Swap(true) {
		t.tell("read_denied", fmt.Errorf("%w: allow READ on the topic: after a crash, records may come twice, with the same id", answer))
	}
	return nil
}

// step reads what one fetch has brought, and moves on.
func (t *tail) step(data []byte) error {
	before := t.from
	for b, err := range batch.All(data) {
		if err != nil {
			return t.damaged(err)
		}
		if b.End() <= t.from {
			continue // a fetch begins with the whole batch that holds its offset, or with one before it
		}
		if err := t.take(b); err != nil {
			return err
		}
		if t.from = b.End(); t.from >= t.partition.next { // also after a batch without records
			break
		}
	}
	if t.from == before {
		return errNothingRead
	}
	return nil
}

// take gives the ids that a batch brings. A record without one is not ours.
func (t *tail) take(b *batch.Batch) error {
	ids, err := t.found.take(b, func(e *batch.Entry) (string, bool) {
		if e.Offset < t.from {
			return "", false
		}
		id, _ := e.Header(sink.HeaderID)
		if op, _ := e.Header(sink.HeaderOp); len(id) == 0 && string(op) == sink.OpEnded {
			t.ended = b.End() // it is what endKeys writes
		}
		return string(id), len(id) > 0
	})
	if err != nil {
		return t.damaged(err)
	}
	for _, id := range ids {
		if err := t.each(id); err != nil {
			return &reopenError{err} // no broker's fault, so no reason to read again
		}
	}
	return nil
}

// undecided is what transactions bring whose marker has not come.
type undecided[T any] struct {
	decoder *batch.Decoder
	open    map[int64][]T // by producer
}

func newUndecided[T any](t tuning) undecided[T] {
	return undecided[T]{batch.NewDecoder(t.contents), map[int64][]T{}}
}

// take returns what a batch brings: at once, or with the marker that commits it.
func (u *undecided[T]) take(b *batch.Batch, of func(*batch.Entry) (T, bool)) (found []T, err error) {
	if b.IsControl() {
		committed, known, err := u.decoder.Committed(b)
		if err != nil || !known {
			return nil, err
		}
		if committed {
			found = u.open[b.ProducerID]
		}
		delete(u.open, b.ProducerID)
		return found, nil
	}
	err = u.decoder.Each(b, func(e *batch.Entry) error {
		if one, is := of(e); is {
			found = append(found, one)
		}
		return nil
	})
	if b.IsTransactional() {
		u.open[b.ProducerID], found = append(u.open[b.ProducerID], found...), nil
	}
	return found, err
}

// damaged is for bytes that are no log: reading them again brings the same.
func (t *tail) damaged(err error) error {
	return sink.Permanent("read %s: %w: the log is damaged, or too large when decompressed: move the partition's leader to another replica, or begin with an empty topic",
		t.partition, err)
}
