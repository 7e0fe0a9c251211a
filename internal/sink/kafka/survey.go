package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// surveyAgain is survey until what it finds stays as it is: a topic may go, or turn out to be another cluster's,
// meanwhile.
func (s *Sink) surveyAgain(ctx context.Context, want *mark, behind sink.Tail) (err error) {
	var again *reopenError
	for wait := newBackOff(); ; pause(ctx, wait.NextBackOff()) {
		if err = s.survey(ctx, want, behind); !errors.As(err, &again) || ctx.Err() != nil {
			return err
		}
		s.again(err)
	}
}

// survey makes sure of all topics, compares them with the mark, takes the right to write to them, and gives the ids
// of what lies behind the mark. What was lost is looked for before the fence, which makes the logs longer; the tails
// are read behind it, when they are final. Where something was lost, the fence waits for the first record, so that the
// next life would find the same.
func (s *Sink) survey(ctx context.Context, want *mark, behind sink.Tail) error {
	found, err := s.examineAll(ctx, want)
	if err == nil {
		err = s.locate(ctx, found)
	}
	if err == nil {
		found, err = s.inspect(ctx, found, want)
	}
	if err != nil {
		return err
	}
	lost := s.compare(found, want)
	if err := s.enroll(ctx); err != nil {
		return err
	}
	if s.fenced = lost == nil; s.fenced {
		if err := s.fence(ctx, found); err != nil {
			return err
		}
		if err := s.relocate(ctx, found); err != nil {
			return err
		}
	}
	s.topics, s.names, s.lost = map[string]*topic{}, nil, nil
	for _, t := range found {
		s.learn(t)
	}
	s.options.Made(s.made())
	switch {
	case want == nil:
		return nil
	case lost != nil:
		return lost
	}
	return s.delivered(ctx, want, behind())
}

// locate asks where the partitions end.
func (s *Sink) locate(ctx context.Context, topics []*topic) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.parallel)
	for _, t := range topics {
		group.Go(func() error {
			return s.persist(ctx, "read the ends of topic "+t.name, func(ctx context.Context) error { return s.locateOne(ctx, t) })
		})
	}
	return group.Wait()
}

// relocate asks again where the partitions end, and looks at what has come since.
func (s *Sink) relocate(ctx context.Context, topics []*topic) error {
	var all []*partition
	var before []int64
	for _, t := range topics {
		for _, p := range t.partitions {
			all, before = append(all, p), append(before, p.next)
		}
	}
	if err := s.locate(ctx, topics); err != nil {
		return err
	}
	for i, p := range all {
		p.strange(before[i], p.next, 1) // of the fence
	}
	return s.inspectOthers(ctx, all)
}

func (s *Sink) locateOne(ctx context.Context, t *topic) error {
	ends, err := s.ends(ctx, t)
	if err != nil {
		return err
	}
	for _, p := range t.partitions {
		p.first, p.next = ends[p.number].First, ends[p.number].End
	}
	return nil
}

// examineAll looks at the configured topics, and at those that the mark or the sink know besides, if they still exist:
// a topic that nothing is configured to write to may be deleted.
func (s *Sink) examineAll(ctx context.Context, want *mark) ([]*topic, error) {
	names := slices.Concat(s.options.Topics, s.names)
	if want != nil {
		names = slices.AppendSeq(names, maps.Keys(want.Topics))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found := make([]*topic, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.parallel)
	for i, name := range names {
		group.Go(func() error {
			return s.persist(ctx, "open topic "+name, func(ctx context.Context) (err error) {
				found[i], err = s.examine(ctx, name)
				return err
			})
		})
	}
	err := group.Wait()
	found = slices.DeleteFunc(found, func(t *topic) bool { return t == nil })
	for _, t := range found {
		s.keep(t, want)
	}
	return found, err
}

// examine looks at one topic. It is nil for one that data chose, and that is not there, or is not ours to write to, any
// more.
func (s *Sink) examine(ctx context.Context, name string) (*topic, error) {
	if s.chosen(name) {
		if _, err := s.cluster.Topic(ctx, name); wire.Code(err) == codeUnknownTopic {
			return nil, nil
		}
	}
	t, err := s.ensure(ctx, name)
	if s.chosen(name) && refusesTopic(err) {
		s.close(name, wire.Explain(err))
		return nil, nil
	}
	return t, err
}

// compare finds a log that lacks what it once had (I4): what the mark says, or what the last Write learned, or that a
// partition ends before what this sink saw acknowledged.
func (s *Sink) compare(found []*topic, want *mark) error {
	if s.lost != nil {
		return s.lost
	}
	for _, t := range found {
		var marked topicMark
		if want != nil {
			marked = want.Topics[t.name]
		}
		if t.id != "" && marked.ID != "" && t.id != marked.ID {
			return &sink.LostError{Log: "topic " + t.name, Want: "topic id " + marked.ID, Have: "topic id " + t.id + ": it was made again"}
		}
		if len(marked.Next) > len(t.partitions) {
			return &sink.LostError{Log: "topic " + t.name, Want: fmt.Sprintf("%d partitions", len(marked.Next)),
				Have: fmt.Sprintf("%d partitions: it was made again", len(t.partitions))}
		}
		for _, p := range t.partitions {
			if need := max(want.from(t.name, p.number), s.seen(t.name, p.number)); need > p.next {
				return &sink.LostError{Log: fmt.Sprintf("topic %s partition %d", t.name, p.number),
					Want: fmt.Sprintf("offset %d", need), Have: fmt.Sprintf("offset %d", p.next)}
			}
		}
	}
	return nil
}

// seen is the offset after the last record that a partition acknowledged to this sink.
func (s *Sink) seen(name string, partition int32) int64 {
	if t := s.topics[name]; t != nil && int(partition) < len(t.partitions) {
		return t.partitions[partition].next
	}
	return 0
}

var _ sink.Recaller = (*Sink)(nil)

// Recall is as in sink.Recaller. It reads the topics from their start, one partition after the other.
func (s *Sink) Recall(ctx context.Context, each func(id string) error) error {
	if !s.opened {
		return errors.New("read the topics: the sink is not open: open it")
	}
	for _, name := range s.names {
		for _, p := range s.topics[name].partitions {
			t := tail{sink: s, partition: p, each: each}
			if err := t.read(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// delivered reads the tails of all partitions.
func (s *Sink) delivered(ctx context.Context, want *mark, found func(id string)) error {
	var mu sync.Mutex // guards found
	each := func(id string) error {
		mu.Lock()
		defer mu.Unlock()
		found(id)
		return nil
	}
	var tails []*tail
	for _, name := range s.names {
		for _, p := range s.topics[name].partitions {
			if from := want.from(name, p.number); from < p.next {
				tails = append(tails, &tail{sink: s, partition: p, from: from, each: each})
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.tuning.readers)
	for _, t := range tails {
		group.Go(func() error { return t.read(ctx) })
	}
	return group.Wait()
}
