package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

var _ sink.Reader = (*Reader)(nil)

// Reader reads the topics of a sink as a consumer of committed records does (isolation.level=read_committed), all
// partitions together: where data choose topics, an object may go on in another one.
type Reader struct {
	*fetcher
	catalog *catalog
	tables  map[string]bool // by topic, once something was read of it: whether it is compacted
}

// NewReader checks the options, which are those of the sink.
func NewReader(options Options, start sink.Start) (*Reader, error) {
	s, err := New(options)
	if err != nil {
		return nil, err
	}
	return &Reader{newFetcher(s.brokers, start), s.catalog, map[string]bool{}}, nil
}

// Read is as in sink.Reader. A topic that is not there yet has no records.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	if err := r.connect(); err != nil {
		return err
	}
	if !r.began { // a wrong address is told at once
		if err := r.cluster.Reach(ctx); err != nil {
			return checkError("reach the brokers", wire.Explain(err))
		}
	}
	others, err := r.matching(ctx)
	if err != nil {
		return err
	}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.options.Topics, others))))
	err = r.readTogether(ctx, names, func(m *sink.Stored) error {
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
		r.tables[topic] = compacts(cmp.Or(settings.Values[cleanupPolicy], r.options.spec(topic).Configs[cleanupPolicy]))
		return err
	})
	return r.tables[topic], err
}

// matching are the topics that only records tell.
func (r *Reader) matching(ctx context.Context) (names []string, err error) {
	if r.options.Others == nil {
		return nil, nil
	}
	err = r.persist(ctx, "list topics", func(ctx context.Context) error {
		names, err = r.cluster.Topics(ctx)
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool { return !r.options.Others.MatchString(name) }), err
}

// Close is as in sink.Reader.
func (r *Reader) Close() error {
	r.disconnect()
	return nil
}

// leastFetch is how many bytes are read of a partition at once at least, however many are read together.
const leastFetch = 32 << 10

// readTogether hands on what partitions have by the times of the records, so that what an object went on with in
// another topic comes after what it was before. The order within a partition stays.
func (f *fetcher) readTogether(ctx context.Context, topics []string, each func(*sink.Stored) error) error {
	var all []*stretch // those that have more
	for _, name := range topics {
		some, err := f.stretches(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	for _, s := range all {
		s.most = max(s.most/len(all), leastFetch)
	}
	for last := (*stretch)(nil); ; {
		for _, s := range all {
			for len(s.behind) == 0 && s.offset < s.end {
				err := f.step(ctx, s, func(e *batch.Entry) error {
					if !time.UnixMilli(e.Timestamp).Before(f.start.Since) {
						m := storedOf(s.topic, s.number, e)
						m.Key, m.Value = bytes.Clone(m.Key), bytes.Clone(m.Value) // they are valid for a moment only
						s.behind = append(s.behind, m)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
		}
		all = slices.DeleteFunc(all, func(s *stretch) bool { return len(s.behind) == 0 }) // read to its end
		if len(all) == 0 {
			return nil
		}
		last = slices.MinFunc(all, byAge(last))
		message := last.behind[0]
		last.behind = last.behind[1:]
		if err := each(message); err != nil {
			return err
		}
	}
}

// byAge tells which stretch has the older next message. Kafka's times are milliseconds, so an object can move between
// topics within one: there its versions decide. Otherwise a message comes first that is from where the last one was:
// a tombstone follows its delete.
func byAge(last *stretch) func(a, b *stretch) int {
	return func(a, b *stretch) int {
		one, other := a.behind[0], b.behind[0]
		order := one.Time.Compare(other.Time)
		if order == 0 && bytes.Equal(one.Key, other.Key) {
			version, otherVersion := one.Header(sink.HeaderResourceVersion), other.Header(sink.HeaderResourceVersion)
			// Decimal numbers without leading zeros (KEP-5504).
			order = cmp.Or(cmp.Compare(len(version), len(otherVersion)), strings.Compare(version, otherVersion))
		}
		if order == 0 && a == last {
			return -1
		}
		return order
	}
}

// tails gives the ids after the mark, from all partitions, and names the topics in which keys end after it. It reads
// what is committed, up to where the logs ended when the sink was opened.
func (s *Sink) tails(ctx context.Context, want *mark, found func(id string)) (ended []string, err error) {
	err = together(ctx, s.tuning.readers, s.partitions(), func(ctx context.Context, p *partition) error {
		last, err := s.tail(ctx, p, want.from(p.topic.name, p.number), func(id string) error {
			s.giving.Lock()
			defer s.giving.Unlock()
			found(id)
			return nil
		})
		if last > 0 {
			s.giving.Lock()
			defer s.giving.Unlock()
			ended = append(ended, p.topic.name)
		}
		return err
	})
	slices.Sort(ended)
	return slices.Compact(ended), err
}

// Reread is as in sink.Rereader. It reads the topics from their start, one partition after the other. What lies in a
// table before the end of its keys is in it no more, though compaction may still leave it there.
func (s *Sink) Reread(ctx context.Context, each func(id string) error) error {
	if !s.opened {
		return errors.New("read the topics: the sink is not open: open it")
	}
	for _, p := range s.partitions() {
		over := int64(0)
		if p.topic.compacted {
			var err error
			if over, err = s.tail(ctx, p, 0, func(string) error { return nil }); err != nil {
				return err
			}
		}
		if _, err := s.tail(ctx, p, over, each); err != nil {
			return err
		}
	}
	return nil
}

// tail gives the ids that the partition has from the offset on, and says after which offset no more keys end; 0 is that
// none does. A record without an id is not ours.
func (s *Sink) tail(ctx context.Context, p *partition, from int64, each func(id string) error) (ended int64, err error) {
	f := newFetcher(s.brokers, sink.Start{})
	for of := f.pieceOf(p, from); of.offset < of.end && err == nil; {
		err = f.step(ctx, of, func(e *batch.Entry) error {
			id, _ := e.Header(sink.HeaderID)
			op, _ := e.Header(sink.HeaderOp)
			switch {
			case e.Offset >= p.next: // it has come since
			case len(id) > 0:
				return each(string(id))
			case string(op) == sink.OpEnded:
				ended = e.Offset + 1 // it is what endKeys writes
			}
			return nil
		})
	}
	if unreadable, is := errors.AsType[*unreadableError](err); is { // reading it again brings the same
		return 0, sink.Permanent("read %s: %w: the log is damaged, or too large when decompressed: move the partition's leader to another replica, or begin with an empty topic",
			p, unreadable.error)
	}
	if wire.Code(err) != kerr.TopicAuthorizationFailed.Code {
		return ended, err
	}
	// The sink goes on: what a crash left there comes a second time, with the same id.
	if answer, _ := errors.AsType[*wire.Error](err); !s.unread.Swap(true) {
		s.tell("read_denied", fmt.Errorf("%w: allow READ on the topic: after a crash, records may come twice, with the same id", answer))
	}
	return 0, nil
}
