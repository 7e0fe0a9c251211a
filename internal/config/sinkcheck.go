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
	if s.Name != "" && !consistsOf(s.Name, lower+upper+digits+"-_.") {
		k.problem(path+".name", "%q cannot be a name; want letters, digits and any of -_.", shorten(s.Name))
	}
	if s.Name != "" && strings.Trim(s.Name, ".") == "" {
		k.problem(path+".name", "%q cannot be a name, because the sink's directory has the same name; want a letter or a digit in it", shorten(s.Name))
	}
	var kinds []string
	for _, d := range s.destinations() {
		d.check(k, under(path, d.kind))
		kinds = append(kinds, d.kind)
	}
	slices.Sort(kinds)
	switch len(kinds) {
	case 0:
		k.problem(path, "no destination; give it one of file, kafka, nats")
	case 1:
	default:
		k.problem(path, "%d destinations, %s; give each a sink of its own", len(kinds), strings.Join(kinds, " and "))
	}
	if s.Queue.Spool != 0 && !s.Queue.spools() {
		k.problem(path+".queue.spool", "a size on disk needs full: %s or full: %s; add one, or leave spool out", fullSpool, fullCoalesce)
	}
	if len(s.Ops) > 0 && s.Queue.Coalesces() {
		k.problem(path+".ops", "a queue with full: %s merges operations; choose %s or %s, or leave ops out", fullCoalesce, fullBlock, fullSpool)
	}
	s.checkRejected(k, path)
	s.checkWanted(k, path+".resources", resources)
	s.checkRouted(k, path, resources)
	s.checkUpdates(k, path+".updates", resources)
	s.checkTable(k, path+".kafka", resources)
}

// checkTable checks that resources that a wildcard may yet stand for have topics or keys of their own, where the key
// alone says which object a message is of. What is served now proves nothing of what comes later.
func (s *Sink) checkTable(k *checker, path string, resources []Resource) {
	if s.Kafka == nil || !s.Kafka.Compacts() && s.Format != formatObject || tellsResource("", s.Kafka.Key) {
		return
	}
	var named, wildcards []Resource
	for _, r := range resources {
		switch {
		case len(s.Resources) > 0 && !slices.Contains(s.Resources, r.Name):
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

// checkRejected checks what becomes of records that the sink will never take.
func (s *Sink) checkRejected(k *checker, path string) {
	if len(s.Trim) > 0 && !s.Trims() {
		k.problem(path+".trim", "needs oversize: trim; set that, or leave it out")
	}
	if strings.ContainsRune(s.DeadLetter.Dir, 0) {
		k.problem(path+".deadLetter.dir", "a path cannot hold a zero byte")
	}
}

// checkWanted checks that a sink asks only for what is watched. Where nothing is watched so far, flags will say what
// is.
func (s *Sink) checkWanted(k *checker, path string, resources []Resource) {
	if len(resources) == 0 {
		return
	}
	watched := make(map[string]bool)
	for _, r := range resources {
		watched[r.Name] = true
	}
	for i, name := range s.Resources {
		if !watched[name] {
			k.problem(item(path, i), "%q is not watched; write it as in resources: %s", shorten(name), join(slices.Collect(maps.Keys(watched))))
		}
	}
}

// checkRouted checks that templates are for what is watched.
func (s *Sink) checkRouted(k *checker, path string, resources []Resource) {
	for _, d := range s.destinations() {
		r := d.routes()
		for _, name := range slices.Sorted(maps.Keys(r.own)) {
			watched := func(r Resource) bool { return r.Name == name }
			if len(resources) > 0 && !slices.ContainsFunc(resources, watched) {
				k.problem(under(path+"."+d.kind+"."+r.key, name), "%q is not watched; write it as in resources", shorten(name))
			}
		}
	}
}
