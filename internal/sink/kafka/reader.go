package kafka

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// leastFetch is how many bytes are read of a partition at once at least, however many are read together.
const leastFetch = 32 << 10

// merged hands on what partitions have by the times of the records, so that what an object went on with in another
// topic comes after what it was before. The order within a partition stays.
type merged struct {
	*fetcher
	all  []*stretch // those that have more
	last *stretch   // which the message before came from
}

func (f *fetcher) readTogether(ctx context.Context, topics []string, each func(*sink.Stored) error) error {
	t := merged{fetcher: f}
	for _, name := range topics {
		some, err := f.stretches(ctx, name)
		if err != nil {
			return err
		}
		t.all = append(t.all, some...)
	}
	for _, s := range t.all {
		s.most = max(s.most/len(t.all), leastFetch)
	}
	for {
		if err := t.fill(ctx); err != nil || len(t.all) == 0 {
			return err
		}
		t.last = t.oldest()
		message := t.last.behind[0]
		t.last.behind = t.last.behind[1:]
		if err := each(message); err != nil {
			return err
		}
	}
}

// fill fetches on where nothing is left, and leaves out what is read to its end.
func (t *merged) fill(ctx context.Context) error {
	for _, s := range t.all {
		for len(s.behind) == 0 && s.offset < s.end {
			if err := t.step(ctx, s, s.keep); err != nil {
				return err
			}
		}
	}
	t.all = slices.DeleteFunc(t.all, func(s *stretch) bool { return len(s.behind) == 0 })
	return nil
}

// keep takes a message that is valid for a moment only.
func (s *stretch) keep(m *sink.Stored) error {
	m.Key, m.Value = bytes.Clone(m.Key), bytes.Clone(m.Value)
	s.behind = append(s.behind, m)
	return nil
}

// oldest is whose next message is the oldest.
func (t *merged) oldest() *stretch {
	oldest := t.all[0]
	for _, s := range t.all[1:] {
		if t.precedes(s, oldest) {
			oldest = s
		}
	}
	return oldest
}

// precedes says whether the next message of a comes before that of b. Kafka's times are milliseconds, so an object can
// move between topics within one: there its versions decide. Otherwise a message comes first that is from where the one
// before was: a tombstone follows its delete.
func (t *merged) precedes(a, b *stretch) bool {
	one, other := a.behind[0], b.behind[0]
	if order := one.Time.Compare(other.Time); order != 0 {
		return order < 0
	}
	if bytes.Equal(one.Key, other.Key) {
		version, otherVersion := one.Header(sink.HeaderResourceVersion), other.Header(sink.HeaderResourceVersion)
		// Decimal numbers without leading zeros (KEP-5504).
		if order := cmp.Or(cmp.Compare(len(version), len(otherVersion)), strings.Compare(version, otherVersion)); order != 0 {
			return order < 0
		}
	}
	return a == t.last
}

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
