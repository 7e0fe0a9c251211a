package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// JetStream's own limits.
const (
	maxReplicas = 5
	maxHistory  = 64
)

// minSpool is less than any spool is useful with, and keeps a mistyped unit from blocking at once.
const minSpool = 1 << 20

// minResync keeps a mistyped unit from listing the whole cluster without end.
const minResync = Duration(time.Minute)

func (k *checker) sink(path string, s *Sink, resources []Resource) {
	if s.Name != "" && !consistsOf(s.Name, lower+upper+digits+"-_.") {
		k.problem(path+".name", "%q cannot be a name; want letters, digits and any of -_.", shorten(s.Name))
	}
	if s.Name != "" && strings.Trim(s.Name, ".") == "" {
		k.problem(path+".name", "%q cannot be a name: a directory of the sink is called so; want a letter or a digit in it", shorten(s.Name))
	}
	switch kinds := s.destinations(); {
	case len(kinds) == 0:
		k.problem(path, "no destination; give it one of file, kafka, nats")
	case len(kinds) > 1:
		k.problem(path, "%d destinations, %s; give each a sink of its own", len(kinds), strings.Join(kinds, " and "))
	}
	if s.Kafka != nil {
		k.kafka(path+".kafka", s.Kafka)
	}
	if s.NATS != nil {
		k.nats(path+".nats", s.NATS)
	}
	if s.File != nil {
		k.file(path+".file", s.File)
	}
	k.format(path+".format", s)
	k.queue(path+".queue", s.Queue)
	k.rejected(path, s)
	k.wanted(path+".resources", s.Resources, resources)
	k.routed(path, s, resources)
	if s.Resync != 0 && s.Resync < minResync {
		k.problem(path+".resync", "want 0 (never), or a length of time of at least %s, have %s", minResync, s.Resync)
	}
}

func (k *checker) format(path string, s *Sink) {
	known := slices.Contains(Formats(), s.Format)
	if known && s.File != nil && !slices.Contains(LineFormats(), s.Format) {
		k.problem(path, "%s needs headers, which a file does not have; allowed here: %s", s.Format, strings.Join(LineFormats(), ", "))
		return
	}
	k.oneOf(path, s.Format, Formats())
}

// destinations are the keys of the destinations that are given.
func (s *Sink) destinations() []string {
	var keys []string
	if s.File != nil {
		keys = append(keys, "file")
	}
	if s.Kafka != nil {
		keys = append(keys, "kafka")
	}
	if s.NATS != nil {
		keys = append(keys, "nats")
	}
	return keys
}

func (k *checker) queue(path string, q Queue) {
	if q.Bytes < 1 {
		k.problem(path+".bytes", "want a size of at least 1, have %d", int64(q.Bytes))
	}
	if q.Records < 1 {
		k.problem(path+".records", "want a whole number, at least 1, have %d", q.Records)
	}
	k.oneOf(path+".full", q.Full, FullPolicies())
	if q.Spool != 0 && q.Full != FullSpool && q.Full != FullCoalesce {
		k.problem(path+".spool", "a size on disk needs full: %s or full: %s; add one, or leave spool out", FullSpool, FullCoalesce)
	}
}

// rejected checks what becomes of records that the sink will never take.
func (k *checker) rejected(path string, s *Sink) {
	k.oneOf(path+".oversize", s.Oversize, OversizePolicies())
	if len(s.Trim) > 0 && s.Oversize != OversizeTrim {
		k.problem(path+".trim", "is of use with oversize: trim alone; set that, or leave it out")
	}
	if strings.ContainsRune(s.DeadLetter.Dir, 0) {
		k.problem(path+".deadLetter.dir", "a path cannot hold a zero byte")
	}
}

// wanted checks that a sink asks only for what is watched. Where nothing is watched so far, flags will say what is.
func (k *checker) wanted(path string, names []string, resources []Resource) {
	if len(resources) == 0 {
		return
	}
	watched := make(map[string]bool)
	for _, r := range resources {
		watched[r.Name] = true
	}
	for i, name := range names {
		if !watched[name] {
			k.problem(item(path, i), "%q is not watched; write it as in resources: %s", shorten(name), list(slices.Collect(maps.Keys(watched))))
		}
	}
}

// routed checks that templates are for what is watched.
func (k *checker) routed(path string, s *Sink, resources []Resource) {
	templates, key := map[string]string(nil), ""
	switch {
	case s.Kafka != nil:
		templates, key = s.Kafka.Topics, path+".kafka.topics"
	case s.NATS != nil:
		templates, key = s.NATS.Subjects, path+".nats.subjects"
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		watched := func(r Resource) bool { return r.Name == name }
		if len(resources) > 0 && !slices.ContainsFunc(resources, watched) {
			k.problem(under(key, name), "%q is not watched; write it as in resources", shorten(name))
		}
	}
}

// sinkNames checks that each sink has a name of its own: positions and metrics are kept by it.
func (k *checker) sinkNames(c *Config) {
	nameless := c.namelessKinds()
	first := make(map[string]string)
	for i := range c.Sinks {
		s, path := &c.Sinks[i], item("sinks", i)
		switch before := first[s.Name]; {
		case s.Name == "" && s.Kind() != "":
			k.problem(path+".name", "missing; %d sinks of kind %s have none, give each a name", nameless[s.Kind()], s.Kind())
		case s.Name == "":
			// It has no destination either, and gets a name with one.
		case before != "":
			k.problem(path+".name", "%q is the name of %s already; give each sink its own", shorten(s.Name), before)
		default:
			first[s.Name] = path
		}
	}
}

func (k *checker) file(path string, f *File) {
	switch {
	case f.Path == "":
		k.problem(path+".path", "missing; want a file such as /var/log/changes.ndjson, or %q for standard output", Stdout)
	case strings.ContainsRune(f.Path, 0):
		k.problem(path+".path", "a path cannot hold a zero byte")
	}
	if f.Rotate < 0 {
		k.problem(path+".rotate", "want a size of at least 0, have %d", int64(f.Rotate))
	}
	if f.Rotate != 0 && f.Path == Stdout {
		k.problem(path+".rotate", "standard output cannot be rotated; leave it out")
	}
	if f.Keep < 0 || f.Keep > 0 && f.Rotate == 0 {
		k.problem(path+".keep", "counts rotated files; give rotate a size, or leave it out")
	}
}

func (k *checker) nats(path string, n *NATS) {
	if n.URL == "" {
		k.problem(path+".url", "missing; want servers such as nats://host:4222")
	} else if _, err := parseServers(n.URL); err != nil {
		k.problem(path+".url", "%v; have %q", err, withoutLogin(n.URL))
	}
	if n.KV == "" {
		k.stream(path, n)
	} else {
		k.bucket(path, n)
	}
	k.oneOf(path+".publish", n.Publish, Publishings())
	k.oneOf(path+".storage", n.Storage, Storages())
	k.oneOf(path+".discard", n.Discard, Discards())
	if n.Discard == DiscardNew && n.MaxBytes == 0 {
		k.problem(path+".discard", "a stream without a limit is never full; give maxBytes, or leave it out")
	}
	if n.Shared && (n.KV != "" || n.Publish == "fast" || n.Publish == "atomic") {
		k.problem(path+".shared", "goes with a stream and publish ordered or auto only")
	}
	if (n.TLS.Cert == "") != (n.TLS.Key == "") {
		k.problem(path+".tls", "cert and key go together; give both or neither")
	}
	if n.Replicas < 1 || n.Replicas > maxReplicas {
		k.problem(path+".replicas", "want a whole number from 1 to %d, have %d", maxReplicas, n.Replicas)
	}
	if n.MaxAge < 0 {
		k.problem(path+".maxAge", "want a length of time such as 10h or 1h30m, have %s", n.MaxAge)
	}
	k.login(path, n)
}

func (k *checker) stream(path string, n *NATS) {
	if !isStream(n.Stream) {
		k.problem(path+".stream", "%q cannot be a stream; leave out white space and any of .*>/\\", shorten(n.Stream))
	}
	if err := checkSubject(n.Subject); err != nil {
		k.problem(path+".subject", "%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Subjects)) {
		if err := checkSubject(n.Subjects[name]); err != nil {
			k.problem(under(path+".subjects", name), "%v", err)
		}
	}
	if n.History != 0 {
		k.problem(path+".history", "is of a bucket; add kv, or leave it out")
	}
}

func (k *checker) bucket(path string, n *NATS) {
	if !consistsOf(n.KV, lower+upper+digits+"-_") {
		k.problem(path+".kv", "%q cannot be a bucket; want letters, digits and any of -_", shorten(n.KV))
	}
	if n.Stream != "" {
		k.problem(path+".stream", "a bucket has a stream of its own; leave out one of kv and stream")
	}
	if n.Subject != "" {
		k.problem(path+".subject", "a bucket has subjects of its own; leave out one of kv and subject")
	}
	if len(n.Subjects) > 0 {
		k.problem(path+".subjects", "a bucket has subjects of its own; leave out one of kv and subjects")
	}
	if n.MaxAge != 0 {
		k.problem(path+".maxAge", "a bucket holds what is there, whatever its age; leave it out")
	}
}

func (k *checker) login(path string, n *NATS) {
	if keys := n.loginKeys(); len(keys) > 1 && !n.hasJWT() {
		k.problem(path, "%d ways to log in, %s; leave all but one out", len(keys), strings.Join(keys, ", "))
	}
	if n.Password != "" && n.User == "" {
		k.problem(path+".password", "a password without a user; add user")
	}
	if isSeed(n.Nkey) {
		k.problem(path+".nkey", "want the path of a file that holds the seed, have a seed")
	}
}

// isStream says whether JetStream takes the name: it becomes part of subjects and of file names.
func isStream(name string) bool {
	return name != "" && !strings.ContainsFunc(name, isBlank) && !strings.ContainsAny(name, `.*>/\`)
}

// isSeed recognizes a key that was put where its file's path belongs, before anything prints it.
func isSeed(text string) bool {
	return len(text) == 58 && text[0] == 'S' && consistsOf(text, upper+digits)
}
