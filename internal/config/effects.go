package config

import (
	"reflect"
	"strings"
)

// Effect is a key whose value consumers see.
type Effect struct {
	Key   string // such as kafka.frames
	Value []byte // as JSON, a set in its order; nil is the default
	Text  string // what consumers see of another value
}

// effects are the texts, by the names that the tag effect of a key has. A key without one concerns no consumer, or the
// positions and the marks of the sinks tell what becomes of it.
func effects() map[string]string {
	return map[string]string{
		"new":     "it holds for new records only",
		"second":  "it holds from the second change of each object at the latest, or after exporter snapshot",
		"next":    "it holds from the next change of each object; exporter snapshot sends all objects by it",
		"shape":   "it holds from the next change of each object, and for records on disk; exporter snapshot sends all objects by it",
		"form":    "new records have another form, and readers have to read both until exporter snapshot has sent all objects",
		"behind":  "while the sink is behind, coalesce leaves out all states of an object but the newest; block and spool do not",
		"schemas": "without it the sink waits where a schema is not registered",
		"whole":   "each object is sent whole first, then as configured",
		"hashes":  "hashes differ from those before, from the next update of each object",
		"place":   "if it leads to another place, a gap of reason lost and a full snapshot follow there, and the old one stays as it is",
		"broker":  "if it leads to another broker, rename the sink: what was sent is not there",
		"fence":   "an exporter with the old one is not fenced: stop it first",
	}
}

// Effects are those of the whole configuration beside its resources and sinks, of an entry, or of a sink: of what is
// set alone where that has keys of its own.
func Effects[T Config | Resource | Sink](of *T) (all []Effect) {
	for at, f := range each("", reflect.ValueOf(of).Elem()) {
		if text := effects()[f.Tag.Get("effect")]; text != "" && !strings.Contains(at, "[") { // not in a list
			all = append(all, Effect{at, f.written(f.value), text})
		}
	}
	return all
}
