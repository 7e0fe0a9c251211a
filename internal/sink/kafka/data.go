package kafka

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// A topic that is none of Options.Topics was chosen by data: by an object's label, namespace or name, or by a
// definition that came later. Whoever may make such objects must not be able to end the sink: what speaks against the
// topic is held against the messages alone.

// topicError is what of this package's own rules speaks against one topic.
type topicError struct{ err error }

func (e *topicError) Error() string { return e.err.Error() }
func (e *topicError) Unwrap() error { return e.err }

// topicPermanent is permanent, and about one topic.
func topicPermanent(format string, args ...any) error {
	return &sink.PermanentError{Err: &topicError{fmt.Errorf(format, args...)}}
}

// refusesTopic says whether the error is about one topic, and only a person can mend it.
func refusesTopic(err error) bool {
	switch wire.Code(err) {
	case codeInvalidTopic, codeTopicForbidden, codeInvalidPartitions, codeInvalidReplication, codeInvalidAssignment, codeInvalidConfig, codePolicy:
		return true
	}
	var own *topicError
	return errors.As(err, &own)
}

// closed is a topic that data chose and that cannot be written to, and since when that is known.
type closed struct {
	err   error
	since time.Time
}

// mostClosed bounds how many of them are remembered.
const mostClosed = 1000

// chosen says whether data chose the topic.
func (s *Sink) chosen(name string) bool { return !slices.Contains(s.options.Topics, name) }

// close remembers what speaks against a topic, for a moment: looking again costs some requests.
func (s *Sink) close(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shut) >= mostClosed {
		clear(s.shut)
	}
	s.shut[name] = closed{err, s.now()}
}

// closedTopic is what speaks against a topic, nil where nothing is known.
func (s *Sink) closedTopic(name string) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.shut[name]
	if !known || s.now().Sub(c.since) > s.tuning.closed {
		return nil
	}
	return &refusal{reason: "topic", err: c.err, noPlace: true}
}

// forbidden turns an error of a request about a topic that data chose into one that Open answers: the next Write
// rejects what is meant for the topic. Other errors stay as they are.
func (s *Sink) forbidden(name string, err error) error {
	if err == nil || name == "" || !refusesTopic(err) || !s.chosen(name) {
		return err
	}
	s.close(name, err)
	return reopen("%v: open the sink again", err) // not wrapped: it is not permanent
}

// admit says whether one more topic may be made because data chose it.
func (s *Sink) admit(name string) error {
	most := s.options.LabelTopics
	if !s.chosen(name) {
		return nil
	}
	if most == 0 || s.made() < most {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making[name] = true
		return nil
	}
	if !s.full {
		s.full = true
		s.options.Notice(fmt.Sprintf("has created %d topics for labels, as many as kafka.labelTopics allows: records for further topics become dead letters", most))
	}
	return topicPermanent("open topic %s: it does not exist, and labels have made %d topics already: create it, or raise kafka.labelTopics", name, most)
}

// isMade says whether this sink has made the topic, as far as it remembers.
func (s *Sink) isMade(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.making[name]
}

// made is how many topics were made because data chose them.
func (s *Sink) made() (n int) {
	for _, t := range s.topics {
		if t.made {
			n++
		}
	}
	return n
}
