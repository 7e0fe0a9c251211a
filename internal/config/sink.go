package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// check checks a sink by itself and beside the resources, of which flags may still bring some.
func (s *Sink) check(k *checker, path string, resources []Resource) {
	var kinds []string
	if s.File != nil {
		kinds = append(kinds, KindFile)
		k.problemIf(strings.HasSuffix(s.File.Path, "/"), path+".file.path", "%q is a directory; name a file in it", shorten(s.File.Path))
		k.problemIf(s.File.Rotate != 0 && s.File.Path == stdout, path+".file.rotate", "standard output cannot be rotated; leave it out")
		k.problemIf(s.File.Keep > 0 && s.File.Rotate == 0, path+".file.keep", "counts rotated files; give rotate a size, or leave it out")
		k.problemIf(slices.Contains(Formats(), s.Format) && !slices.Contains(LineFormats(), s.Format), path+".format",
			"%s needs headers, which a file does not have; allowed here: %s", s.Format, strings.Join(LineFormats(), ", "))
	}
	if s.Kafka != nil {
		kinds = append(kinds, KindKafka)
		s.checkKafka(k, path+".kafka", resources)
	}
	if s.NATS != nil {
		kinds = append(kinds, KindNATS)
		s.NATS.check(k, path+".nats")
		for _, name := range slices.Sorted(maps.Keys(s.NATS.Subjects)) {
			k.checkWatched(under(path+".nats.subjects", name), name, resources)
		}
	}
	k.problemIf(len(kinds) == 0, path, "no destination; give it one of file, kafka, nats")
	k.problemIf(len(kinds) > 1, path, "%d destinations, %s; give each a sink of its own", len(kinds), strings.Join(kinds, " and "))
	k.problemIf(s.Queue.Spool != 0 && !s.Queue.spools(), path+".queue.spool",
		"a size on disk needs full: %s or full: %s; add one, or leave spool out", fullSpool, fullCoalesce)
	k.problemIf(len(s.Ops) > 0 && s.Queue.Coalesces(), path+".ops",
		"a queue with full: %s merges operations; choose %s or %s, or leave ops out", fullCoalesce, fullBlock, fullSpool)
	k.problemIf(s.Resolved.Every != 0 && s.Queue.Coalesces(), path+".resolved",
		"a queue with full: %s leaves states out; choose %s or %s, or leave resolved out", fullCoalesce, fullBlock, fullSpool)
	s.checkDigest(k, path+".resolved.digest", resources)
	k.problemIf(len(s.Trim) > 0 && !s.Trims(), path+".trim", "needs oversize: trim; set that, or leave it out")
	k.problemIf(s.Resources != nil && len(s.Resources) == 0, path+".resources", "the list is empty; name some, or leave it out for all")
	for i, name := range s.Resources {
		k.checkWatched(item(path+".resources", i), name, resources)
	}
	s.checkUpdates(k, path+".updates", resources)
}

// checkDigest checks that whoever reads the sink's log can tell which objects it had at any of its records: every
// version is in it, in an order that the partition of each object keeps.
func (s *Sink) checkDigest(k *checker, path string, resources []Resource) {
	switch {
	case !s.Resolved.Digest:
		return
	case s.Resolved.Every == 0:
		k.problem(path, "needs every beside it; set that, or leave digest out")
	case len(s.Ops) > 0 || s.Filter != "":
		k.problem(path, "a sink with ops or filter is not told of everything; leave those out, or digest")
	case s.NATS != nil && s.NATS.KV != "":
		k.problem(path, "a bucket forgets what each object was; use a stream, or leave digest out")
	case s.Kafka != nil && s.Kafka.Compacts():
		k.problem(path, "a compacted topic forgets what each object was; use cleanup: delete, or leave digest out")
	case s.Kafka != nil && s.FramesAside():
		k.problem(path, "it is of the records before it in its topic, and frames: topic puts it elsewhere; use frames: inline, or leave digest out")
	}
	for _, r := range resources {
		if !s.takes(r.Name) {
			continue
		}
		k.problemIf(len(r.Ops) > 0 || r.Filter != "" || len(r.Ignore) > 0, path,
			"%s has ops, filter or ignore, so the sink is not told of everything; leave those out, or digest, or the resource out of the sink", r.Name)
		if s.Kafka == nil {
			continue
		}
		if template, at := s.Kafka.topicOf(r.Name, ""); hasVarying(template) || strings.Contains(template, "{version}") {
			k.problem(path, "%s has a topic for more than the resource in %s; leave {namespace}, {name}, {version} and labels out of it, or digest", r.Name, strings.TrimPrefix(at, "."))
		}
	}
}

// checkTable checks that resources that a wildcard may yet stand for have topics or keys of their own, where the key
// alone says which object a message is of. What is served now proves nothing of what comes later.
func (s *Sink) checkTable(k *checker, path string, resources []Resource) {
	if !s.Kafka.Compacts() && s.Format != formatObject || tellsResource("", s.Kafka.Key) {
		return
	}
	var named, wildcards []Resource
	for _, r := range resources {
		switch {
		case !s.takes(r.Name):
		case isWildcard(r.Name):
			wildcards = append(wildcards, r)
		default:
			named = append(named, r)
		}
	}
	for _, w := range wildcards {
		template, at := s.Kafka.topicOf(w.Name, path)
		if !tellsResource(template, s.Kafka.Key) {
			k.problem(at, "resources of %q would share topics and keys, and delete each other's objects; have {resource} in it, or in key", w.Name)
			return
		}
		later := laterTopics(template)
		for _, r := range named {
			if own, at := s.Kafka.topicOf(r.Name, path); own != template && later.MatchString(own) {
				k.problem(at, "resources that %q may yet stand for would go there, too, and delete objects of %s; choose another topic, or have {resource} in key", w.Name, r.Name)
				return
			}
		}
	}
}

// topicOf is the template of the resource's topics, and its path.
func (to *Kafka) topicOf(resource, path string) (template, at string) {
	if own, given := to.Topics[resource]; given {
		return own, under(path+".topics", resource)
	}
	return to.Topic, path + ".topic"
}

// tellsResource says whether what is made of the template and the key is of one resource: a kind has hyphens and
// letters, as a group has, so that something else stands between the two.
func tellsResource(template, key string) bool {
	both := template + "\n" + key
	group, kind := strings.Index(both, "{group}"), strings.Index(both, "{kind}")
	if group < 0 || kind < 0 {
		return strings.Contains(both, "{resource}")
	}
	between, _ := withoutPlaceholders(both[min(group+len("{group}"), kind+len("{kind}")):max(group, kind)]) // the key's own check tells
	return strings.Contains(both, "{resource}") || strings.Trim(between, lower+upper+digits+"-") != ""
}

// laterTopics match the topics, but for the cluster's name, that the template makes of resources which are installed
// later: their groups have a dot.
func laterTopics(template string) *regexp.Regexp {
	const group, any = `[a-z0-9-]+(\.[a-z0-9-]+)+`, `[-._a-zA-Z0-9]+`
	values := map[string]string{"cluster": `\{cluster\}`, "resource": `[a-z0-9-]+\.` + group, "group": group, "kind": `[a-zA-Z0-9-]+`}
	pattern := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllStringFunc(regexp.QuoteMeta(template), func(quoted string) string {
		return cmp.Or(values[strings.Trim(quoted, `\{}`)], any)
	})
	return regexp.MustCompile("^" + pattern + "$") // of quoted parts
}

// checkWatched checks that something is asked only of what is watched. Where nothing is watched so far, flags will say
// what is.
func (c *checker) checkWatched(path, name string, resources []Resource) {
	watched := map[string]bool{}
	for _, r := range resources {
		watched[r.Name] = true
	}
	c.problemIf(len(resources) > 0 && !watched[name], path,
		"%q is not watched; write it as in resources: %s", shorten(name), join(slices.Collect(maps.Keys(watched))))
}

// Sink is one destination. Exactly one of Kafka, NATS and File is set in a valid one.
type Sink struct {
	Name      string   `key:"name" like:"sink"`
	Kafka     *Kafka   `key:"kafka"`
	NATS      *NATS    `key:"nats"`
	File      *File    `key:"file"`
	Format    string   `key:"format" of:"cloudevents cloudevents-binary debezium object" default:"cloudevents" effect:"form"`
	Updates   string   `key:"updates" of:"whole patch" default:"whole" effect:"whole"`
	Resources []string `key:"resources"`
	OnLeave   string   `key:"onLeave" of:"keep delete" default:"keep"`
	Actors    bool     `key:"actors" effect:"new"`
	Queue     Queue    `key:"queue"`
	Resync    Duration `key:"resync" min:"1m"`
	Resolved  Resolved `key:"resolved"`

	// What of that the sink leaves out, after what its resources do.
	Ops    []string `key:"ops" of:"added updated deleted" effect:"new"`
	Filter string   `key:"filter" effect:"next"`
	Only   []string `key:"only" effect:"shape"`
	Drop   []string `key:"drop" effect:"shape"`
	Redact []string `key:"redact" effect:"shape"`

	// What the sink will never take.
	Oversize   string     `key:"oversize" of:"deadletter trim reject" default:"deadletter" effect:"new"`
	Trim       []string   `key:"trim" effect:"new"`
	DeadLetter DeadLetter `key:"deadLetter"`
}

// takes says whether the sink takes what is configured under the name.
func (s *Sink) takes(name string) bool {
	return len(s.Resources) == 0 || slices.Contains(s.Resources, name)
}

// Formats are the values of Sink.Format; the first is the default.
func Formats() []string { return allowedBy[Sink]("format") }

// DeadLetter is where records go that a sink will never take. Whoever may write objects decides how many these are, and
// must not fill the volume of the saved state.
type DeadLetter struct {
	Dir   string `key:"dir" like:"path" place:"fixed"`
	Bytes Size   `key:"bytes" default:"256Mi" min:"1Mi"`
}

// Resolved is how often a sink is told up to where its log is complete.
type Resolved struct {
	Every  Duration `key:"every" min:"1s" effect:"new"`
	Digest bool     `key:"digest" effect:"new"`
}

// Queue bounds what waits in memory for one sink. A deeper one makes nothing faster: it is taken from in batches of
// 4 MiB at most. The number of records is there for the fixed cost of small ones; at 512 bytes the two bounds meet.
type Queue struct {
	Bytes   Size   `key:"bytes" default:"32Mi" min:"1"`
	Records int    `key:"records" default:"65536" min:"1"`
	Full    string `key:"full" of:"block spool coalesce" default:"block" effect:"behind"`
	Spool   Size   `key:"spool" default:"10Gi" min:"1Mi"`
}

// applies says whether the key has a default.
func (q *Queue) applies(key string) bool { return key != "spool" || q.spools() }

func (q *Queue) spools() bool { return q.Full == fullSpool || q.Coalesces() }

// Coalesces says whether the queue holds the newest record of each object alone.
func (q *Queue) Coalesces() bool { return q.Full == fullCoalesce }

// Trims says whether a record that is too large is cut until it fits.
func (s *Sink) Trims() bool { return s.Oversize == oversizeTrim }

func namelessKinds(sinks []Sink) map[string]int {
	count := make(map[string]int)
	for i := range sinks {
		if sinks[i].Name == "" {
			count[sinks[i].Kind()]++
		}
	}
	return count
}

// checkNames checks that each sink has a name of its own: positions and metrics are kept by it.
func checkNames(k *checker, sinks []Sink) {
	nameless := namelessKinds(sinks)
	first := make(map[string]string)
	for i := range sinks {
		s, path := &sinks[i], item("sinks", i)
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

// checkSchemas checks that the sink's values can have schemas, each in a subject of its own.
func (s *Sink) checkSchemas(k *checker, path string) {
	r := s.Kafka.Registry
	if r == nil {
		return
	}
	k.problemIf(s.Format == Formats()[0], path,
		"the format cloudevents is JSON as a whole, so that nothing can come before it; choose one of %s", join(Formats()[1:]))
	if !slices.Contains(allowedBy[Registry]("subject"), r.Subject) || r.Subject == subjectRecord {
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
	return hasLabel(template, nil) || strings.Contains(template, "{namespace}") || strings.Contains(template, "{name}")
}

// checkUpdates checks that patches can be made, and that who reads them can fold them.
func (s *Sink) checkUpdates(k *checker, path string, resources []Resource) {
	if !s.Patched() {
		return
	}
	s.checkFoldable(k, path)
	for i := range resources {
		r := &resources[i]
		if !r.Before && (s.takes(r.Name) || slices.ContainsFunc(s.Resources, isWildcard)) {
			k.problem(path, "a patch is made of the object before, which is not kept of %s (%s); add before: true there, or choose updates: %s",
				shorten(r.Name), item("resources", i), updatesWhole)
		}
	}
}

// checkFoldable finds where a patch would be of no use: who reads it could not know the object that it changes.
func (s *Sink) checkFoldable(k *checker, path string) {
	switch {
	case s.Format == formatDebezium:
		k.problem(path, "readers of the format debezium fold no patches; choose the format cloudevents or cloudevents-binary, or updates: %s", updatesWhole)
	case s.Format == formatObject:
		k.problem(path, "nothing in the format object would tell a patch from an object; choose the format cloudevents or cloudevents-binary, or updates: %s", updatesWhole)
	case s.NATS != nil && s.NATS.KV != "":
		k.problem(path, "a bucket keeps the last value of each object, which would be a patch of what is gone; use a stream, or updates: %s", updatesWhole)
	case s.Kafka != nil && s.Kafka.Registry != nil:
		k.problem(path, "a value with a schema is a whole object, and no patch; leave kafka.registry out, or choose updates: %s", updatesWhole)
	case s.Kafka != nil && s.Kafka.Compacts():
		k.problem(path, "a compacted topic keeps the last record of each object, which would be a patch of what is gone; use cleanup: delete, or updates: %s", updatesWhole)
	case s.Kafka != nil && hasLabel(s.Kafka.Topic, s.Kafka.Topics), s.NATS != nil && hasLabel(s.NATS.Subject, s.NATS.Subjects):
		k.problem(path, "a label can change, and a patch would be in another place than the object that it changes; leave the label out of topics and subjects, or choose updates: %s", updatesWhole)
	}
}

// Patched says whether updates go out as patches.
func (s *Sink) Patched() bool { return s.Updates == updatesPatch }

// Kinds of Sink.
const (
	KindKafka  = "kafka"
	KindNATS   = "nats"
	KindFile   = "file"
	KindStdout = "stdout"
)

// Kind says where the sink leads: KindKafka, KindNATS, KindFile or KindStdout, and "" where no destination is set.
func (s *Sink) Kind() string {
	switch {
	case s.Kafka != nil:
		return KindKafka
	case s.NATS != nil:
		return KindNATS
	case s.File == nil:
		return ""
	case s.File.Path == stdout:
		return KindStdout
	}
	return KindFile
}

// checkKafka checks the destination, and what of the sink has to go with it.
func (s *Sink) checkKafka(k *checker, path string, resources []Resource) {
	s.Kafka.check(k, path)
	switch { // keys of a template
	case s.Kafka.Key == "":
	case s.Format == formatDebezium:
		k.problem(path+".key", "the format debezium has keys of its own; leave it out, or choose another format")
	case s.Format == formatObject && !strings.Contains(s.Kafka.Key, objectName):
		k.problem(path+".key", "in the format object the key alone says what a delete deletes; have %s in it, or choose another format", objectName)
	}
	s.checkSchemas(k, path+".registry")
	for _, name := range slices.Sorted(maps.Keys(s.Kafka.Topics)) {
		k.checkWatched(under(path+".topics", name), name, resources)
	}
	s.checkTable(k, path, resources)
}

// FramesAside says whether frames have topics of their own, since readers of the format take each record for a row.
func (s *Sink) FramesAside() bool {
	switch {
	case s.Kafka == nil:
		return false
	case s.Kafka.Frames == "":
		return s.Format == formatDebezium || s.Format == formatObject
	}
	return s.Kafka.Frames == "topic"
}

// HasColumns says whether the sink's values are made for tables of databases.
func (s *Sink) HasColumns() bool {
	return s.Kafka != nil && s.Kafka.Registry != nil && s.Kafka.Registry.Columns == "json"
}

// AsksNamespaces says whether what the sink does with a record may depend on labels of namespaces.
func (s *Sink) AsksNamespaces() bool { return AsksNamespace(s.Filter) || len(s.NamespaceLabels()) > 0 }

// NamespaceLabels are the labels of namespaces that choose where the sink's records go, or are in their headers.
func (s *Sink) NamespaceLabels() (keys []string) {
	var templates []string
	if to := s.Kafka; to != nil {
		templates = slices.Concat([]string{to.Topic}, slices.Collect(maps.Values(to.Topics)), slices.Collect(maps.Values(to.Headers)))
	}
	if n := s.NATS; n != nil {
		templates = slices.Concat([]string{n.Subject}, slices.Collect(maps.Values(n.Subjects)), slices.Collect(maps.Values(n.Headers)))
	}
	for _, template := range templates {
		for _, part := range strings.Split(template, "{"+namespaceLabelPrefix)[1:] {
			key, _, _ := strings.Cut(part, "}")
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// File is a destination on disk, or the process's standard output.
type File struct {
	Path   string `key:"path" like:"path" place:"fixed" need:"a file such as /var/log/changes.ndjson, or \"-\" for standard output" effect:"place"`
	Rotate Size   `key:"rotate"`
	Keep   int    `key:"keep"`
}

// stdout is the path of a File that stands for standard output.
const stdout = "-"
