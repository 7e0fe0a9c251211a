package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// surveyAgain is survey until what it finds stays as it is: a topic may go, or turn out to be another cluster's,
// meanwhile.
func (s *Sink) surveyAgain(ctx context.Context, want *mark, tail sink.Tail) (err error) {
	var again *reopenError
	for wait := newBackOff(); ; pause(ctx, wait.NextBackOff()) {
		if err = s.survey(ctx, want, tail); !errors.As(err, &again) || ctx.Err() != nil {
			return err
		}
		s.again(err)
	}
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
		found, err = s.inspector.inspect(ctx, found, want)
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
	s.forget()
	s.sender.lost = nil
	for _, t := range found {
		s.learn(t)
	}
	s.announced = map[string]bool{}
	for _, name := range s.options.Topics {
		s.announced[name] = true
	}
	if want != nil {
		for name := range want.Topics {
			s.announced[name] = true
		}
	}
	s.form = s.options.Form
	s.catalog.warn(found)
	s.options.Made(s.made())
	switch {
	case want == nil:
		return nil
	case len(old) > 0:
		return s.endKeys(ctx, old)
	case lost != nil:
		return lost
	}
	if old, err = s.tails.delivered(ctx, want, tail()); err != nil || len(old) == 0 {
		return err
	}
	return s.endKeys(ctx, old)
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
	if err := s.locateAll(ctx, topics); err != nil {
		return err
	}
	for i, p := range all {
		p.strange(before[i], p.next, 1) // of the fence
	}
	return s.inspector.inspectOthers(ctx, all)
}

// compare finds a log that lacks what it once had (I4): what the mark says, or what the last Write learned, or that a
// partition ends before what this sink saw acknowledged.
func (s *Sink) compare(found []*topic, want *mark) error {
	if s.sender.lost != nil {
		return s.sender.lost
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
				return &sink.LostError{Log: p.String(),
					Want: fmt.Sprintf("offset %d", need), Have: fmt.Sprintf("offset %d", p.next)}
			}
		}
	}
	return nil
}

// Open is as in sink.Sink.
func (s *Sink) Open(ctx context.Context, at sink.Opening) error {
	want, err := parseMark(at.Mark)
	if err != nil {
		return err
	}
	s.opened = false
	if err := s.connect(); err != nil {
		return err
	}
	if err := s.reach(ctx); err != nil {
		return err
	}
	if err := s.sender.settle(ctx); err != nil {
		return err
	}
	err = s.surveyAgain(ctx, want, at.After)
	var lost *sink.LostError
	if err == nil || errors.As(err, &lost) {
		s.opened = true
	}
	return err
}
