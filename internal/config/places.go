package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkPlaces checks that no place that is written to is one for several tasks. A topic of one resource is of one task.
func (c *checker) checkPlaces(sinks []Sink, whose, placeholder string) {
	for i := range sinks {
		s, path := &sinks[i], item("sinks", i)
		s.renamed(func(key, name, of string) string {
			switch {
			case name == "":
			case key == ".file.path" && name == stdout:
				c.problem(path+key, "standard output is one for %s; choose a file with %s in its name", whose, placeholder)
			case of == topicName && placeholder == taskNumber:
				c.checkApart(path+key, name, whose, placeholder, "{resource}")
			default:
				c.checkApart(path+key, name, whose, placeholder)
			}
			return name
		})
	}
}

// checkApart checks that the value has one of the placeholders in it.
func (c *checker) checkApart(path, value, whose string, by ...string) {
	has := func(placeholder string) bool { return strings.Contains(value, placeholder) }
	c.problemIf(!slices.ContainsFunc(by, has), path, "%q is one place for %s; have %s in it", shorten(value), whose, strings.Join(by, " or "))
}

// What a name is of that a sink's place has, as the tag place of its key says. The third one is template: the sink puts
// the cluster's name into it.
const (
	fixedName = "fixed" // no record chooses it, and no sink puts the cluster's name into it
	topicName = "topic" // as template, and it may be of one resource
)

// renamed is the sink with what change makes of each name of its places, by the key below the sink.
func (s Sink) renamed(change func(key, name, of string) string) Sink {
	for at, f := range each("", reflect.ValueOf(&s).Elem()) {
		at, of := "."+at, f.Tag.Get("place")
		if f.value.Kind() == reflect.Pointer && !f.value.IsNil() { // which others have, too
			own := reflect.New(f.Type.Elem())
			own.Elem().Set(f.value.Elem())
			f.value.Set(own)
		}
		switch names := f.value.Interface().(type) {
		case string:
			if of != "" {
				f.value.SetString(change(at, names, of))
			}
		case map[string]string:
			changed := maps.Clone(names)
			for _, resource := range slices.Sorted(maps.Keys(names)) {
				if of != "" {
					changed[resource] = change(under(at, resource), names[resource], of)
				}
			}
			f.value.Set(reflect.ValueOf(changed))
		}
	}
	return s
}
