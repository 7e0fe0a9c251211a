package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(t.tuning.readers)
	var all []*tail
	for p := range t.known.partitions() {
		if from := want.from(p.topic.name, p.number); from < p.next {
			of := &tail{partition: p, from: from, each: each}
			all = append(all, of)
			group.Go(func() error { return t.read(ctx, of) })
		}
	}
	err = group.Wait()
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
	for p := range t.known.partitions() {
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

// unreadable tells once that a tail cannot be read. The sink goes on: what a crash left there comes a second time, with
// the same id.
func (t *tails) unreadable(err error) {
	if t.unread.Swap(true) {
		return
	}
	t.tell("read_denied", fmt.Errorf("%w: allow READ on the topic: after a crash, records may come twice, with the same id", err))
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
	open      map[int64][]string    // by producer: ids of a transaction whose marker has not come
	decoder   *batch.Decoder
	ended     int64 // the offset after the last batch that ends keys
}

// read gives the ids of the partition, once.
func (t *tails) read(ctx context.Context, of *tail) error {
	err := t.persist(ctx, "read "+of.partition.String(), func(ctx context.Context) error { return t.attempt(ctx, of) })
	if wire.Code(err) == codeTopicForbidden {
		t.unreadable(err)
		return nil
	}
	of.decoder, of.open = nil, nil
	return err
}

// attempt reads on from where the last one failed, up to where the log ended when the sink was opened.
func (t *tails) attempt(ctx context.Context, of *tail) error {
	ends, err := t.ends(ctx, of.partition.topic)
	if err != nil {
		return err
	}
	if of.open == nil {
		of.open, of.decoder = map[int64][]string{}, batch.NewDecoder(t.tuning.contents)
	}
	of.from = max(of.from, ends[of.partition.number].First) // retention may have moved the start
	for of.from < of.partition.next {
		result, err := t.cluster.Fetch(ctx, wire.FetchRequest{
			Topic: of.partition.topic.name, Partition: of.partition.number, Offset: of.from, MaxBytes: t.tuning.fetch,
		})
		if err == nil {
			err = of.step(result.Records)
		}
		if err != nil {
			return unforbidden(err)
		}
	}
	if len(of.open[t.right.producer.ID]) > 0 {
		return errUndecided
	}
	return nil
}

// step reads what one fetch has brought, and moves on.
func (t *tail) step(data []byte) error {
	before := t.from
	for t.from < t.partition.next {
		b, rest, err := batch.Read(data)
		if err != nil {
			return t.damaged(err)
		}
		if b == nil {
			break
		}
		data = rest
		if b.End() <= t.from {
			continue // a fetch begins with the whole batch that holds its offset, or with one before it
		}
		if err := t.take(b); err != nil {
			return err
		}
		t.from = b.End() // also after a batch without records
	}
	if t.from == before {
		return errNothingRead
	}
	return nil
}

// take keeps the ids of a batch. A record without one is not ours.
func (t *tail) take(b *batch.Batch) error {
	if b.Control {
		return t.decide(b)
	}
	var ids []string
	err := t.decoder.Each(b, func(e *batch.Entry) error {
		if id, found := e.Header(sink.HeaderID); found && len(id) > 0 && e.Offset >= t.from {
			ids = append(ids, string(id))
		} else if endsKey(e) && e.Offset >= t.from {
			t.ended = b.End()
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
	return permanent("read %s: %w: the log is damaged, or too large when decompressed: move the partition's leader to another replica, or begin with an empty topic",
		t.partition, err)
}

// endsKey says whether the record is what endKeys writes.
func endsKey(e *batch.Entry) bool {
	op, found := e.Header(sink.HeaderOp)
	return found && bytes.Equal(op, []byte(sink.OpEnded))
}
