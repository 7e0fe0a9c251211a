package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	next    map[slot]*progress
}

// slot is one partition.
type slot struct {
	topic  string
	number int32
}

// progress is how far a partition was read.
type progress struct {
	offset  int64
	aborted map[int64]bool // producers whose transaction does not count, until its marker
}

// stretch is what one Read takes of a partition.
type stretch struct {
	slot
	*progress
	end    int64
	most   int            // bytes of a fetch
	behind []*sink.Stored // fetched, and not handed on yet; only where partitions are read together
}

// stretches are what one Read takes of a topic: up to the last stable offset, so that each transaction below it is
// decided.
func (f *fetcher) stretches(ctx context.Context, name string) (all []*stretch, err error) {
	var numbers []int32
	var ends map[int32]wire.Bounds
	err = f.persist(ctx, "read topic "+name, func(ctx context.Context) error {
		topic, err := f.cluster.Topic(ctx, name)
		numbers = nil
		if wire.Code(err) == codeUnknownTopic {
			return nil
		}
		if err != nil {
			return err
		}
		for _, p := range topic.Partitions {
			numbers = append(numbers, p.ID)
		}
		ends, err = f.cluster.Bounds(ctx, name, numbers, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		all = append(all, f.stretch(slot{name, number}, ends[number]))
	}
	return all, nil
}

func (f *fetcher) stretch(at slot, ends wire.Bounds) *stretch {
	p := f.next[at]
	if p == nil {
		p = &progress{aborted: map[int64]bool{}}
		if f.start.End && !f.began {
			p.offset = ends.End
		}
		f.next[at] = p
	}
	p.offset = max(p.offset, ends.First) // retention may have moved the start
	return &stretch{slot: at, progress: p, end: ends.End, most: f.tuning.fetch}
}

// step hands on what one fetch brings.
func (f *fetcher) step(ctx context.Context, s *stretch, each func(*sink.Stored) error) error {
	result, err := f.fetch(ctx, s)
	before := s.offset
	if err == nil {
		err = f.take(s.progress, &result, func(e *batch.Entry) error { return f.hand(s.slot, before, e, each) })
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
		err := f.step(ctx, from, func(m *sink.Stored) error {
			switch {
			case m.Value == nil:
				delete(living, string(m.Key))
			case m.Header(sink.HeaderID) != "":
				living[string(m.Key)] = struct{}{}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

func (s slot) String() string { return fmt.Sprintf("read topic %s partition %d", s.topic, s.number) }

// fetch reads on in the stretch, of which there is more.
func (f *fetcher) fetch(ctx context.Context, s *stretch) (result wire.FetchResult, err error) {
	err = f.persist(ctx, s.String(), func(ctx context.Context) (err error) {
		result, err = f.cluster.Fetch(ctx, wire.FetchRequest{
			Topic: s.topic, Partition: s.number, Offset: s.offset, MaxBytes: s.most, Committed: true,
		})
		if err == nil && len(result.Records) == 0 {
			err = errNothingRead
		}
		return err
	})
	return result, err
}

// unreadableError says that a batch cannot be read, and where to read on after it.
type unreadableError struct {
	end int64
	err error
}

func (e *unreadableError) Error() string { return e.err.Error() }

func (e *unreadableError) Unwrap() error { return e.err }

// take gives the committed records of what a fetch brought. Its error is that of each, or an *unreadableError.
func (f *fetcher) take(p *progress, result *wire.FetchResult, each func(*batch.Entry) error) error {
	aborted := result.Aborted
	for data := result.Records; ; {
		b, rest, err := batch.Read(data)
		if err != nil || b == nil {
			return err
		}
		data = rest
		for len(aborted) > 0 && aborted[0].FirstOffset <= b.BaseOffset {
			p.aborted[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		if b.End() <= p.offset {
			continue // a fetch begins with the whole batch that holds its offset
		}
		switch {
		case b.Control:
			delete(p.aborted, b.Producer.ID)
		case b.Producer.Transactional && p.aborted[b.Producer.ID]:
		default:
			err = f.read(b, each)
		}
		if err != nil {
			return err
		}
		p.offset = b.End()
	}
}

// read gives the records of a batch.
func (f *fetcher) read(b *batch.Batch, each func(*batch.Entry) error) (refused error) {
	err := f.decoder.Each(b, func(e *batch.Entry) error {
		refused = each(e)
		return refused
	})
	if refused != nil || err == nil {
		return refused
	}
	return &unreadableError{b.End(), err}
}

func (f *fetcher) hand(at slot, from int64, e *batch.Entry, each func(*sink.Stored) error) error {
	if e.Offset < from || time.UnixMilli(e.Timestamp).Before(f.start.Since) {
		return nil
	}
	return each(storedOf(at.topic, at.number, e))
}
