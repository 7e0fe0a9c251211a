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
	s.renamed(func(key, name string, of placeName) string {
		switch {
		case name == "", key == ".nats.stream" && s.NATS.Shared:
		case key == ".file.path" && name == stdout:
			p.problem(path+key, "standard output is one for %s; choose a file with %s in its name", p.of, placeholder)
		case of == topicName && placeholder == taskNumber:
			p.apart(path+key, name, placeholder, "{resource}")
		default:
			p.apart(path+key, name, placeholder)
		}
		return name
	})
}

// placeName says what a name is of that a sink's place has.
type placeName byte

const (
	fixedName    placeName = iota // no record chooses it, and no sink puts the cluster's name into it
	templateName                  // the sink puts the cluster's name into it
	topicName                     // likewise, and it may be of one resource
)

// renamed is the sink with what change makes of each name of its places, by the key below the sink.
func (s Sink) renamed(change func(key, name string, of placeName) string) Sink {
	all := func(key string, names map[string]string, of placeName) map[string]string {
		changed := maps.Clone(names)
		for _, resource := range slices.Sorted(maps.Keys(names)) {
			changed[resource] = change(under(key, resource), names[resource], of)
		}
		return changed
	}
	s.DeadLetter.Dir = change(".deadLetter.dir", s.DeadLetter.Dir, fixedName)
	if s.File != nil {
		s.File = new(*s.File)
		s.File.Path = change(".file.path", s.File.Path, fixedName)
	}
	if s.NATS != nil {
		to := new(*s.NATS)
		s.NATS = to
		to.KV = change(".nats.kv", to.KV, fixedName)
		if to.KV == "" {
			to.Stream = change(".nats.stream", to.Stream, templateName)
			to.Subject = change(".nats.subject", to.Subject, templateName) // those of two streams may not overlap
			to.Subjects = all(".nats.subjects", to.Subjects, templateName)
		}
		if to.Service != nil {
			to.Service = new(*to.Service)
			to.Service.Subject = change(".nats.service.subject", to.Service.Subject, templateName)
		}
	}
	if s.Kafka != nil {
		to := new(*s.Kafka)
		s.Kafka = to
		to.Topic = change(".kafka.topic", to.Topic, topicName)
		to.Topics = all(".kafka.topics", to.Topics, topicName)
		to.TransactionalID = change(".kafka.transactionalId", to.TransactionalID, fixedName)
		if to.Signals != nil {
			to.Signals = new(*to.Signals)
			to.Signals.Topic = change(".kafka.signals.topic", to.Signals.Topic, templateName)
		}
	}
	return s
}

// apart checks that the value has one of the placeholders in it.
func (p *places) apart(path, value string, by ...string) {
	if !slices.ContainsFunc(by, func(placeholder string) bool { return strings.Contains(value, placeholder) }) {
		p.problem(path, "%q is one place for %s; have %s in it", shorten(value), p.of, strings.Join(by, " or "))
	}
}
