package kafka

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

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
