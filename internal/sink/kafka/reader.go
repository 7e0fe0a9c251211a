package kafka

import (
	"cmp"
	"context"
	"fmt"
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
	catalog *catalog
	topics  []string
	others  *regexp.Regexp
	tables  map[string]bool // by topic, once something was read of it: whether it is compacted
}

// NewReader checks the options, which are those of the sink.
func NewReader(options Options, start sink.Start) (*Reader, error) {
	s, err := New(options)
	if err != nil {
		return nil, err
	}
	f := &fetcher{brokers: s.brokers, start: start, decoder: batch.NewDecoder(s.tuning.contents), next: map[slot]*progress{}}
	return &Reader{f, s.catalog, options.Topics, options.Others, map[string]bool{}}, nil
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
	read := r.readTogether
	if r.others == nil {
		read = r.readEach
	}
	err = read(ctx, names, func(m *sink.Stored) error {
		table, err := r.isTable(ctx, m.Destination)
		if err != nil {
			return err
		}
		if table {
			m.Row, m.Erases = fmt.Sprintf("topic %s partition %d key %q", m.Destination, m.Partition, m.Key), m.Value == nil
		}
		return each(m)
	})
	r.began = r.began || err == nil
	return err
}

func (r *Reader) isTable(ctx context.Context, topic string) (bool, error) {
	table, known := r.tables[topic]
	if known {
		return table, nil
	}
	err := r.persist(ctx, "read the settings of topic "+topic, func(ctx context.Context) error {
		settings, err := r.catalog.settings(ctx, topic)
		r.tables[topic] = compacts(cmp.Or(settings.CleanupPolicy, r.options.spec(topic).Configs[cleanupPolicy]))
		return err
	})
	return r.tables[topic], err
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
