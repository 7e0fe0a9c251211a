package kafka

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the topics of a sink as a consumer of committed records does (isolation.level=read_committed): one
// partition after the other. Where data choose topics, an object may go on in another one, so all partitions are read
// together then.
type Reader struct {
	*brokers
	topics  []string
	others  *regexp.Regexp
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

// NewReader checks the options, which are those of the sink.
func NewReader(options Options, start sink.Start) (*Reader, error) {
	s, err := New(options)
	if err != nil {
		return nil, err
	}
	return &Reader{
		brokers: s.brokers, topics: options.Topics, others: options.Others, start: start, decoder: batch.NewDecoder(s.tuning.contents), next: map[slot]*progress{},
	}, nil
}

// Read is as in sink.Reader. A topic that is not there yet has no records.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	if err := r.connect(); err != nil {
		return err
	}
	if !r.reached {
		if err := r.cluster.Reach(ctx); err != nil {
			return checkError("reach the brokers", wire.Explain(err))
		}
		r.reached = true
	}
	others, err := r.matching(ctx)
	if err != nil {
		return err
	}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.topics, others))))
	if r.others == nil {
		err = r.readEach(ctx, names, each)
	} else {
		err = r.readTogether(ctx, names, each)
	}
	r.began = r.began || err == nil
	return err
}

// readEach reads one partition after the other.
func (r *Reader) readEach(ctx context.Context, topics []string, each func(*sink.Stored) error) error {
	for _, name := range topics {
		stretches, err := r.stretches(ctx, name)
		for _, s := range stretches {
			for err == nil && s.offset < s.end {
				err = r.step(ctx, s, each)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// matching are the topics that only records tell.
func (r *Reader) matching(ctx context.Context) (names []string, err error) {
	if r.others == nil {
		return nil, nil
	}
	err = r.persist(ctx, "list topics", func(ctx context.Context) (err error) {
		names, err = r.cluster.Names(ctx)
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool { return !r.others.MatchString(name) }), err
}

// stretches are what one Read takes of a topic: up to the last stable offset, so that each transaction below it is
// decided.
func (r *Reader) stretches(ctx context.Context, name string) (all []*stretch, err error) {
	var numbers []int32
	var ends map[int32]wire.Bounds
	err = r.persist(ctx, "read topic "+name, func(ctx context.Context) error {
		topic, err := r.cluster.Topic(ctx, name)
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
		ends, err = r.cluster.Bounds(ctx, name, numbers, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		all = append(all, r.stretch(slot{name, number}, ends[number]))
	}
	return all, nil
}

func (r *Reader) stretch(at slot, ends wire.Bounds) *stretch {
	p := r.next[at]
	if p == nil {
		p = &progress{aborted: map[int64]bool{}}
		if r.start.End && !r.began {
			p.offset = ends.End
		}
		r.next[at] = p
	}
	p.offset = max(p.offset, ends.First) // retention may have moved the start
	return &stretch{slot: at, progress: p, end: ends.End, most: r.tuning.fetch}
}

// step hands on what one fetch brings.
func (r *Reader) step(ctx context.Context, s *stretch, each func(*sink.Stored) error) error {
	result, err := r.fetch(ctx, s)
	before := s.offset
	if err == nil {
		err = r.take(s.progress, &result, func(e *batch.Entry) error { return r.hand(s.slot, before, e, each) })
	}
	if err == nil && s.offset == before {
		err = fmt.Errorf("%s: %w", s, errNothingRead)
	}
	return err
}

func (s slot) String() string { return fmt.Sprintf("read topic %s partition %d", s.topic, s.number) }

// fetch reads on in the stretch, of which there is more.
func (r *Reader) fetch(ctx context.Context, s *stretch) (result wire.FetchResult, err error) {
	err = r.persist(ctx, s.String(), func(ctx context.Context) (err error) {
		result, err = r.cluster.Fetch(ctx, wire.FetchRequest{
			Topic: s.topic, Partition: s.number, Offset: s.offset, MaxBytes: s.most, Committed: true,
		})
		if err == nil && len(result.Records) == 0 {
			err = errNothingRead
		}
		return err
	})
	return result, err
}

// unreadableError says that a batch cannot be read, and where to read on behind it.
type unreadableError struct {
	end int64
	err error
}

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// take gives the committed records of what a fetch brought. Its error is that of each, or an *unreadableError.
func (r *Reader) take(p *progress, result *wire.FetchResult, each func(*batch.Entry) error) error {
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
			err = r.read(b, each)
		}
		if err != nil {
			return err
		}
		p.offset = b.End()
	}
}

// read gives the records of a batch.
func (r *Reader) read(b *batch.Batch, each func(*batch.Entry) error) (refused error) {
	err := r.decoder.Each(b, func(e *batch.Entry) error {
		refused = each(e)
		return refused
	})
	if refused != nil || err == nil {
		return refused
	}
	return &unreadableError{b.End(), err}
}

func (r *Reader) hand(at slot, from int64, e *batch.Entry, each func(*sink.Stored) error) error {
	if e.Offset < from || time.UnixMilli(e.Timestamp).Before(r.start.Since) {
		return nil
	}
	return each(storedOf(at.topic, at.number, e))
}

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	r.disconnect()
	return nil
}
