package kafka

import (
	"context"
	"regexp"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the topics of a sink as a consumer of committed records does (isolation.level=read_committed): one
// partition after the other. Where data choose topics, an object may go on in another one, so all partitions are read
// together then.
type Reader struct {
	*fetcher
	topics []string
	others *regexp.Regexp
}

// NewReader checks the options, which are those of the sink.
func NewReader(options Options, start sink.Start) (*Reader, error) {
	s, err := New(options)
	if err != nil {
		return nil, err
	}
	f := &fetcher{brokers: s.brokers, start: start, decoder: batch.NewDecoder(s.tuning.contents), next: map[slot]*progress{}}
	return &Reader{f, options.Topics, options.Others}, nil
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

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	r.disconnect()
	return nil
}
