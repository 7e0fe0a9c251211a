package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// fetcher reads partitions, each on from where it was.
type fetcher struct {
	*brokers
	start   sink.Start
	decoder *batch.Decoder
	began   bool // the first Read is over: what appears now is read from its start
	next    map[string]*stretch
}

func newFetcher(b *brokers, start sink.Start) *fetcher {
	return &fetcher{brokers: b, start: start, decoder: batch.NewDecoder(b.tuning.contents), next: map[string]*stretch{}}
}

// stretch is how far a partition was read, and what one Read takes of it.
type stretch struct {
	topic   string
	number  int32
	offset  int64
	aborted map[int64]bool // producers whose transaction does not count, until its marker
	end     int64
	most    int            // bytes of a fetch
	behind  []*sink.Stored // fetched, and not handed on yet; only where partitions are read together
}

func (s *stretch) String() string {
	return fmt.Sprintf("read topic %s partition %d", s.topic, s.number)
}

// stretches are what one Read takes of a topic: up to the last stable offset, so that each transaction below it is
// decided.
func (f *fetcher) stretches(ctx context.Context, name string) (all []*stretch, err error) {
	var ends []wire.Bounds
	err = f.persist(ctx, "read topic "+name, func(ctx context.Context) error {
		topic, err := f.cluster.Topic(ctx, name)
		if wire.Code(err) == kerr.UnknownTopicOrPartition.Code {
			ends = nil
			return nil
		}
		if err == nil {
			ends, err = f.cluster.Bounds(ctx, name, len(topic.Partitions), true)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for number, at := range ends {
		all = append(all, f.stretch(name, int32(number), at))
	}
	return all, nil
}

func (f *fetcher) stretch(topic string, number int32, ends wire.Bounds) *stretch {
	s := f.piece(topic, number, span{})
	if before := f.next[s.String()]; before != nil {
		s = before
	} else if f.start.End && !f.began {
		s.offset = ends.End
	}
	f.next[s.String()] = s
	s.offset = max(s.offset, ends.First) // retention may have moved the start
	s.end, s.most = ends.End, f.tuning.fetch
	return s
}

// piece is what lies at the offsets of a partition.
func (f *fetcher) piece(topic string, number int32, at span) *stretch {
	return &stretch{topic: topic, number: number, offset: at.from, end: at.to, most: f.tuning.fetch, aborted: map[int64]bool{}}
}

// pieceOf is what the partition has from the offset on. Retention may have moved its start.
func (f *fetcher) pieceOf(p *partition, from int64) *stretch {
	return f.piece(p.topic.name, p.number, span{max(from, p.first), p.next})
}

// step hands on what one fetch brings.
func (f *fetcher) step(ctx context.Context, s *stretch, each func(*batch.Entry) error) error {
	result, err := f.fetch(ctx, s)
	before := s.offset
	if err == nil {
		err = f.take(s, &result, func(e *batch.Entry) error {
			if e.Offset < before {
				return nil
			}
			return each(e)
		})
	}
	if err == nil && s.offset == before {
		err = fmt.Errorf("%s: %w", s, errNothingRead)
	}
	return err
}

// living hands on the keys in the stretch whose newest message is one of ours with a value, where there are any. It
// remembers a bounded number of them, so one may come more than once, and one whose value goes later may come (I6).
func (f *fetcher) living(ctx context.Context, from *stretch, take func(keys []string) error) error {
	living := map[string]struct{}{}
	for {
		if len(living) > 0 && (from.offset >= from.end || len(living) >= f.tuning.records) {
			if err := take(slices.Sorted(maps.Keys(living))); err != nil {
				return err
			}
			clear(living)
		}
		if from.offset >= from.end {
			return nil
		}
		err := f.step(ctx, from, func(e *batch.Entry) error {
			if id, _ := e.Header(sink.HeaderID); e.Value == nil {
				delete(living, string(e.Key))
			} else if len(id) > 0 {
				living[string(e.Key)] = struct{}{}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// fetch reads on in the stretch, of which there is more. Where nothing comes, a transaction there is still to be
// decided, which the timeout of its owner bounds.
func (f *fetcher) fetch(ctx context.Context, s *stretch) (result wire.FetchResult, err error) {
	err = f.persist(ctx, s.String(), func(ctx context.Context) (err error) {
		at := wire.FetchRequest{Topic: s.topic, Partition: s.number, Offset: s.offset, MaxBytes: s.most}
		result, err = f.cluster.Fetch(ctx, at)
		if err == nil && len(result.RecordBatches) == 0 {
			err = errUndecided
		}
		return err
	})
	return result, err
}

// unreadableError says that a batch cannot be read, and where to read on after it; 0 is not known.
type unreadableError struct {
	end int64
	error
}

func (e *unreadableError) Unwrap() error { return e.error }

// take gives the committed records of what a fetch brought. Its error is that of each, or an *unreadableError.
func (f *fetcher) take(s *stretch, result *wire.FetchResult, each func(*batch.Entry) error) error {
	aborted := result.AbortedTransactions
	for b, err := range batch.All(result.RecordBatches) {
		if err != nil {
			return &unreadableError{0, err}
		}
		for len(aborted) > 0 && aborted[0].FirstOffset <= b.FirstOffset {
			s.aborted[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		switch {
		case b.End() <= s.offset:
			continue // a fetch begins with the whole batch that holds its offset
		case b.IsControl():
			delete(s.aborted, b.ProducerID)
		case b.IsTransactional() && s.aborted[b.ProducerID]:
		default:
			var refused error
			err = f.decoder.Each(b, func(e *batch.Entry) error {
				refused = each(e)
				return refused
			})
			if err != nil && refused == nil {
				err = &unreadableError{b.End(), err}
			}
		}
		if err != nil {
			return err
		}
		s.offset = b.End()
	}
	return nil
}

// storedOf is a record as readers of logs have it.
func storedOf(topic string, number int32, e *batch.Entry) *sink.Stored {
	stored := &sink.Stored{
		Place:       fmt.Sprintf("topic %s partition %d offset %d", topic, number, e.Offset),
		Destination: topic, Partition: number, Key: e.Key, Value: e.Value, Time: time.UnixMilli(e.Timestamp),
	}
	for name, value := range e.Headers() {
		stored.Headers = append(stored.Headers, sink.Header{Name: string(name), Value: string(value)})
	}
	return stored
}
