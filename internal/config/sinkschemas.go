package config

import (
	"maps"
	"slices"
	"strings"
)

// checkSchemas checks that the sink's values can have schemas, each in a subject of its own.
func (s *Sink) checkSchemas(k *checker, path string) {
	r := s.Kafka.Registry
	if r == nil {
		return
	}
	if s.Format == Formats()[0] {
		k.problem(path, "the format cloudevents is JSON as a whole, so that nothing can come before it; choose one of %s", join(Formats()[1:]))
	}
	if oneOf(r.Subject, allowedBy[Registry]("subject")) != nil || r.Subject == subjectRecord {
		return
	}
	at := under(path, "subject")
	s.checkSubject(k, at, "topic", s.Kafka.Topic)
	for _, name := range slices.Sorted(maps.Keys(s.Kafka.Topics)) {
		if isWildcard(name) || hasVarying(s.Kafka.Topics[name]) {
			s.checkSubject(k, at, under("topics", name), s.Kafka.Topics[name])
		}
	}
}

// checkSubject checks that a subject named after a topic has one schema, and that data do not make subjects.
func (s *Sink) checkSubject(k *checker, path, key, template string) {
	if checkTopic(template) != nil {
		return // which is a problem already
	}
	chosen, one := s.Kafka.Registry.Subject, len(s.Resources) == 1 && !isWildcard(s.Resources[0])
	switch {
	case hasVarying(template):
		k.problem(path, "%q, and objects choose topics by kafka.%s %q; choose %s, or leave out {namespace}, {name} and labels there", chosen, key, shorten(template), subjectRecord)
	case chosen == subjectTopic && !one && !strings.Contains(template, "{resource}"):
		k.problem(path, "%q, and the objects of several resources share a topic by kafka.%s %q; choose %s or topic-record, or have {resource} in it", chosen, key, shorten(template), subjectRecord)
	}
}

// hasVarying says whether objects of one resource may go to several topics.
func hasVarying(template string) bool {
	return hasLabel(template) || strings.Contains(template, "{namespace}") || strings.Contains(template, "{name}")
}
