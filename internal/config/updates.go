package config

import (
	"maps"
	"slices"
)

// checkUpdates checks that patches can be made, and that who reads them can fold them.
func (s *Sink) checkUpdates(k *checker, path string, resources []Resource) {
	if !s.Patched() {
		return
	}
	s.checkFoldable(k, path)
	for i := range resources {
		r := &resources[i]
		taken := len(s.Resources) == 0 || slices.Contains(s.Resources, r.Name) || slices.ContainsFunc(s.Resources, isWildcard)
		if taken && !r.Before {
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
	case slices.ContainsFunc(s.templates(), hasLabel):
		k.problem(path, "a label can change, and a patch would be in another place than the object that it changes; leave the label out of topics and subjects, or choose updates: %s", updatesWhole)
	}
}

// templates are those of the sink's topics or subjects.
func (s *Sink) templates() (all []string) {
	for _, d := range s.destinations() {
		r := d.routes()
		all = slices.AppendSeq(all, maps.Values(r.own))
		if r.common != "" {
			all = append(all, r.common)
		}
	}
	return all
}

// Patched says whether updates go out as patches.
func (s *Sink) Patched() bool { return s.Updates == updatesPatch }
