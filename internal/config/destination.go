package config

import (
	"slices"
	"strings"
)

// Kinds of Sink.
const (
	KindKafka  = "kafka"
	KindNATS   = "nats"
	KindFile   = "file"
	KindStdout = "stdout"
)

// Kind says where the sink leads: KindKafka, KindNATS, KindFile or KindStdout, and "" where no destination is set.
func (s *Sink) Kind() string {
	switch given := s.destinations(); {
	case len(given) == 0:
		return ""
	case given[0].kind == KindFile && s.File.Path == stdout:
		return KindStdout
	default:
		return given[0].kind
	}
}

// destination is one that a sink has.
type destination struct {
	kind   string // its key
	given  bool
	check  func(k *checker, path string)
	routes func() routes
}

// destinations are those that are given. Beside it only keys, parseSink and the texts of
// errors list them.
func (s *Sink) destinations() []destination {
	all := []destination{
		{kind: KindKafka, given: s.Kafka != nil, check: s.checkKafka, routes: s.Kafka.routes},
		{kind: KindNATS, given: s.NATS != nil, check: s.NATS.check, routes: s.NATS.routes},
		{kind: KindFile, given: s.File != nil, check: s.checkFile, routes: s.File.routes},
	}
	return slices.DeleteFunc(all, func(d destination) bool { return !d.given })
}

// checkKafka checks the destination, and what of the sink has to go with it.
func (s *Sink) checkKafka(k *checker, path string) {
	s.Kafka.check(k, path)
	s.Kafka.checkFormat(k, path+".key", s.Format)
	s.checkSchemas(k, path+".registry")
}

// checkFile checks the destination, and that its lines can have the sink's format.
func (s *Sink) checkFile(k *checker, path string) {
	s.File.check(k, path)
	if slices.Contains(Formats(), s.Format) && !slices.Contains(LineFormats(), s.Format) {
		k.problem(strings.TrimSuffix(path, "file")+"format", "%s needs headers, which a file does not have; allowed here: %s", s.Format, strings.Join(LineFormats(), ", "))
	}
}
