package kafka

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// outdated are the compacted topics whose records are in another form than what is to be written: objects would live
// under their old keys, or in topics that they have left, for ever. Unless somebody accepts new keys, that is an error.
// It changes nothing.
func (c *catalog) outdated(ctx context.Context, want *mark) ([]string, error) {
	if want == nil || len(want.Form) == 0 || c.options.Changed == nil {
		return nil, nil
	}
	changed := c.options.Changed(want.Form, func(topic string) bool { _, had := want.Topics[topic]; return had })
	if changed == "" {
		return nil, nil
	}
	tables, err := c.tables(ctx, want)
	switch {
	case err != nil:
		return nil, err
	case len(tables) == 0:
		c.options.Warn(changed + ": an object's records before and after that have no order")
		return nil, nil
	case !c.options.AcceptNewKeys:
		return nil, newKeys(tables[0], changed)
	}
	return tables, nil
}

// tables are those topics that are compacted of what the mark has, as far as they are there, and of what is configured.
func (c *catalog) tables(ctx context.Context, want *mark) (tables []string, err error) {
	names := slices.AppendSeq(slices.Clone(c.options.Topics), maps.Keys(want.Topics))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		policy := ""
		err := c.persist(ctx, "open topic "+name, func(ctx context.Context) (err error) {
			policy, err = c.policy(ctx, name, want.Topics[name].ID)
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

// policy is the topic's cleanup.policy, and what is configured where that is not told. A topic that the mark has, and
// that is gone or was made again, has none: that is told as a loss.
func (c *catalog) policy(ctx context.Context, name, marked string) (string, error) {
	configured := c.options.spec(name).Configs[cleanupPolicy]
	_, err := c.cluster.Topic(ctx, name)
	if wire.Code(err) == codeUnknownTopic {
		if marked != "" || c.chosen.has(name) {
			configured = ""
		}
		return configured, nil
	}
	if err != nil {
		return "", err
	}
	identity, err := c.cluster.Identity(ctx, name)
	if err != nil || marked != "" && identity.ID != marked {
		return "", err
	}
	settings, err := c.settings(ctx, name)
	return cmp.Or(settings.CleanupPolicy, configured), err
}

// CheckMark says what stands against going on at the mark, and changes nothing. It is for a sink that is not open.
func (s *Sink) CheckMark(ctx context.Context, at sink.Mark) error {
	want, err := parseMark(at)
	if err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	defer s.disconnect()
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	_, err = s.catalog.outdated(bounded, want)
	return checkError("compare the keys of topics with those of before", err)
}

// endKeys gives each key of ours in the topics a message without a value, in the partition that has it, so that
// compaction leaves nothing of it. All is sent again after that, so it is told as a loss. Should the process end before
// that is saved, the log tells the next one, which ends what is left (tails.delivered). So once keys end in a topic,
// all end that it had, and nothing before the end counts (tails.all).
func (s *Sink) endKeys(ctx context.Context, topics []string) error {
	f := &fetcher{brokers: s.brokers, decoder: batch.NewDecoder(s.tuning.contents), next: map[slot]*progress{}}
	for _, name := range topics {
		t := s.topics[name]
		if t == nil {
			continue // it is gone
		}
		for _, p := range t.partitions {
			if err := s.endKeysOf(ctx, p, f.stretch(slot{name, p.number}, wire.Bounds{First: p.first, End: p.next}), f); err != nil {
				return err
			}
		}
		t.schema, t.byKey, t.moved = 0, false, true
	}
	s.catalog.replaced = nil
	return &sink.LostError{Log: "topic " + topics[0], Want: "in another form", Have: "the end of its old keys, after --accept-new-keys"}
}

// endKeysOf reads the partition once. It remembers a bounded number of keys, so one may be ended more than once (I6).
func (s *Sink) endKeysOf(ctx context.Context, p *partition, from *stretch, f *fetcher) error {
	living := map[string]struct{}{}
	end := func() error {
		defer clear(living)
		return s.end(ctx, p, slices.Sorted(maps.Keys(living)))
	}
	for from.offset < from.end {
		err := f.step(ctx, from, func(m *sink.Stored) error {
			switch {
			case m.Value == nil:
				delete(living, string(m.Key))
			case m.Header(sink.HeaderID) != "":
				living[string(m.Key)] = struct{}{}
			}
			return nil
		})
		if err == nil && len(living) >= s.tuning.records {
			err = end()
		}
		if err != nil {
			return err
		}
	}
	return end()
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
	s.planner.begin(p)
	over.add(p, 0, len(keys))
	return s.deliver(ctx, over)
}
