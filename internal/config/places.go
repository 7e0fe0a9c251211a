package config

import (
	"maps"
	"slices"
	"strings"
)

// places checks that places are not one for several tasks.
type places struct {
	*checker
	of string
}

// ofSink checks all that the sink writes to. A topic of one resource is of one task.
func (p *places) ofSink(s *Sink, path, placeholder string) {
	if s.DeadLetter.Dir != "" {
		p.apart(path+".deadLetter.dir", s.DeadLetter.Dir, placeholder)
	}
	switch {
	case s.File == nil:
	case s.File.Path == stdout:
		p.problem(path+".file.path", "standard output is one for %s; choose a file with %s in its name", p.of, placeholder)
	default:
		p.apart(path+".file.path", s.File.Path, placeholder)
	}
	if to := s.NATS; to != nil {
		switch {
		case to.KV != "":
			p.apart(path+".nats.kv", to.KV, placeholder)
		case !to.Shared:
			p.apart(path+".nats.stream", to.Stream, placeholder)
			fallthrough
		default: // subjects of two streams may not overlap
			p.apart(path+".nats.subject", to.Subject, placeholder)
			p.allApart(path+".nats.subjects", to.Subjects, placeholder)
		}
		if to.Service != nil {
			p.apart(path+".nats.service.subject", to.Service.Subject, placeholder)
		}
	}
	if to := s.Kafka; to != nil {
		topic := []string{placeholder}
		if placeholder == taskNumber {
			topic = append(topic, "{resource}")
		}
		p.apart(path+".kafka.topic", to.Topic, topic...)
		p.allApart(path+".kafka.topics", to.Topics, topic...)
		if to.TransactionalID != "" {
			p.apart(path+".kafka.transactionalId", to.TransactionalID, placeholder)
		}
		if to.Signals != nil {
			p.apart(path+".kafka.signals.topic", to.Signals.Topic, placeholder)
		}
	}
}

func (p *places) allApart(path string, templates map[string]string, by ...string) {
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		p.apart(under(path, name), templates[name], by...)
	}
}

// apart checks that the value has one of the placeholders in it.
func (p *places) apart(path, value string, by ...string) {
	if !slices.ContainsFunc(by, func(placeholder string) bool { return strings.Contains(value, placeholder) }) {
		p.problem(path, "%q is one place for %s; have %s in it", shorten(value), p.of, strings.Join(by, " or "))
	}
}
