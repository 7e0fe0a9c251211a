package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// Open is as in sink.Sink.
func (s *Sink) Open(ctx context.Context, at sink.Opening) error {
	want, err := parseMark(at.Mark)
	if err != nil {
		return err
	}
	if s.opened = false; s.options.Elsewhere != nil {
		maps.DeleteFunc(want.Topics, func(name string, _ topicMark) bool { return s.options.Elsewhere(name) })
		maps.DeleteFunc(s.topics, func(name string, _ *topic) bool { return s.options.Elsewhere(name) })
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	if err := s.sender.settle(ctx); err != nil {
		return err
	}
	for wait := newBackOff(); ; sink.Pause(ctx, wait.NextBackOff(), nil) {
		err = s.survey(ctx, want, at.After)
		if !errors.As(err, new(*reopenError)) || ctx.Err() != nil {
			break
		}
		s.again(err) // a topic may go, or turn out to be another cluster's, meanwhile
	}
	s.opened = err == nil || errors.As(err, new(*sink.LostError))
	return err
}

// survey makes sure of all topics, compares them with the mark, takes the right to write to them, and gives the ids
// of what lies after the mark. What was lost is looked for before the fence, which makes the logs longer; the tails
// are read after it, when they are final. Where something was lost, the fence waits for the first record, so that the
// next life would find the same.
func (s *Sink) survey(ctx context.Context, want *mark, tail sink.Tail) error {
	old, err := s.catalog.outdated(ctx, want)
	if err != nil {
		return err
	}
	old = append(old, s.catalog.replaced...)
	found, err := s.catalog.examineAll(ctx, want)
	if err == nil {
		err = s.locateAll(ctx, found)
	}
	if err == nil {
		found, err = s.catalog.inspect(ctx, found, want)
	}
	if err != nil {
		return err
	}
	lost := s.compare(found, want)
	if err := s.right.enroll(ctx); err != nil {
		return err
	}
	if lost == nil {
		if err := s.right.fence(ctx, found); err != nil {
			return err
		}
		if err := s.relocate(ctx, found); err != nil {
			return err
		}
	}
	clear(s.topics)
	s.sender.lost = nil
	for _, t := range found {
		s.topics[t.name] = t
	}
	s.announced = map[string]bool{}
	for _, name := range s.options.Topics {
		s.announced[name] = true
	}
	for name := range want.Topics {
		s.announced[name] = true
	}
	s.form = s.options.Form
	s.catalog.warn(found)
	s.options.Made(s.made())
	switch {
	case len(old) > 0:
		return s.endKeys(ctx, old)
	case want.isNone():
		return nil
	case lost != nil:
		return lost
	}
	if old, err = s.tails(ctx, want, tail()); err != nil || len(old) == 0 {
		return err
	}
	return s.endKeys(ctx, old)
}

// relocate asks again where the partitions end, and looks at what has come since.
func (s *Sink) relocate(ctx context.Context, topics []*topic) error {
	all, before := partitionsOf(topics), []int64(nil)
	for _, p := range all {
		before = append(before, p.next)
	}
	if err := s.locateAll(ctx, topics); err != nil {
		return err
	}
	for i, p := range all {
		p.strange(before[i], p.next, 1) // of the fence
	}
	return s.catalog.inspectOthers(ctx, all)
}

// compare finds a log that lacks what it once had (I4): what the mark says, or what the last Write learned, or that a
// partition ends before what this sink saw acknowledged.
func (s *Sink) compare(found []*topic, want *mark) error {
	if s.sender.lost != nil {
		return s.sender.lost
	}
	for _, t := range found {
		marked := want.Topics[t.name]
		if t.id != "" && marked.ID != "" && t.id != marked.ID {
			return &sink.LostError{Log: "topic " + t.name, Want: "topic id " + marked.ID, Have: "topic id " + t.id + ": it was made again"}
		}
		if len(marked.Next) > len(t.partitions) {
			return &sink.LostError{Log: "topic " + t.name, Want: fmt.Sprintf("%d partitions", len(marked.Next)),
				Have: fmt.Sprintf("%d partitions: it was made again", len(t.partitions))}
		}
		for _, p := range t.partitions {
			need := want.from(t.name, p.number)
			if seen := s.topics[t.name]; seen != nil && int(p.number) < len(seen.partitions) {
				need = max(need, seen.partitions[p.number].next)
			}
			if need > p.next {
				return &sink.LostError{Log: p.String(),
					Want: fmt.Sprintf("offset %d", need), Have: fmt.Sprintf("offset %d", p.next)}
			}
		}
	}
	return nil
}

// outdated are the compacted topics whose records are in another form than what is to be written, or of which nobody
// knows: objects would live under their old keys, or in topics that they have left, for ever. Of another form, that is
// an error unless somebody accepts new keys. It changes nothing.
func (c *catalog) outdated(ctx context.Context, want *mark) ([]string, error) {
	if c.options.Changed == nil {
		return nil, nil
	}
	had := func(topic string) bool { _, had := want.Topics[topic]; return had }
	tables, err := c.tables(ctx, slices.DeleteFunc(slices.Clone(c.options.Topics), had), want)
	if err != nil {
		return nil, err
	}
	old, err := c.unknown(ctx, tables)
	if err != nil || len(want.Form) == 0 {
		return old, err
	}
	changed := c.options.Changed(want.Form, had)
	if changed == "" {
		return old, nil
	}
	tables, err = c.tables(ctx, slices.AppendSeq(slices.Clone(c.options.Topics), maps.Keys(want.Topics)), want)
	switch {
	case err != nil:
		return nil, err
	case len(tables) == 0:
		c.options.Warn(changed + ": an object's records before and after that have no order, and a new topic lacks what does not change: run exporter snapshot")
		return nil, nil
	case !c.options.AcceptNewKeys:
		return nil, newKeys(tables[0], changed)
	}
	return tables, nil
}

// tables are those topics that are compacted, by their cleanup.policy, and by what is configured where that is not
// told. One that the mark has, and that is gone or was made again, is none: that is told as a loss.
func (c *catalog) tables(ctx context.Context, names []string, want *mark) (tables []string, err error) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		policy, marked, configured := "", want.Topics[name].ID, c.options.spec(name).Configs[cleanupPolicy]
		err := c.persist(ctx, "open topic "+name, func(ctx context.Context) error {
			found, err := c.cluster.Topic(ctx, name)
			switch {
			case wire.Code(err) == kerr.UnknownTopicOrPartition.Code:
				if marked == "" && !c.isChosen(name) {
					policy = configured
				}
				return nil
			case err != nil || marked != "" && found.ID != marked:
				return err
			}
			settings, err := c.settings(ctx, name)
			policy = cmp.Or(settings.Values[cleanupPolicy], configured)
			return err
		})
		if err != nil {
			return nil, err
		}
		if compacts(policy) {
			tables = append(tables, name)
		}
	}
	return tables, nil
}

// CheckMark says what stands against going on at the mark, and notes of what Open would warn. It changes nothing. It is
// for a sink that is not open.
func (s *Sink) CheckMark(ctx context.Context, at sink.Mark) (note string, err error) {
	want, err := parseMark(at)
	if err != nil {
		return "", err
	}
	if err := s.connect(); err != nil {
		return "", err
	}
	defer s.disconnect()
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	warn := s.options.Warn
	s.options.Warn = func(text string) { note = text }
	defer func() { s.options.Warn, s.catalog.unfamiliar = warn, false }()
	_, err = s.catalog.outdated(bounded, want)
	return note, checkError("compare the keys of topics with those of before", err)
}

// endKeys gives each key of ours in the topics a message without a value, in the partition that has it, so that
// compaction leaves nothing of it. All is sent again after that, so it is told as a loss. Should the process end before
// that is saved, the log tells the next one, which ends what is left (tails). So once keys end in a topic,
// all end that it had, and nothing before the end counts (Reread).
func (s *Sink) endKeys(ctx context.Context, topics []string) error {
	f := newFetcher(s.brokers, sink.Start{})
	for _, name := range topics {
		t := s.topics[name]
		if t == nil {
			continue // it is gone
		}
		for _, p := range t.partitions {
			if err := f.living(ctx, f.pieceOf(p, 0), func(keys []string) error { return s.end(ctx, p, keys) }); err != nil {
				return err
			}
		}
		t.schema, t.byKey = 0, false
	}
	s.catalog.replaced = nil
	return &sink.LostError{Log: "topic " + topics[0], Want: "in another form", Have: "the end of its old keys, after --accept-new-keys"}
}

// end makes it durable that the keys are over in the partition.
func (s *Sink) end(ctx context.Context, p *partition, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	over := plan{touched: []*partition{p}}
	for _, key := range keys {
		over.messages = append(over.messages, sink.Message{Op: sink.OpEnded, Destination: p.topic.name, Key: []byte(key), Time: s.now()})
	}
	s.sender.turn++
	s.sender.start(p)
	over.add(p, 0, len(keys))
	return s.deliver(ctx, over)
}
