package config

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ClusterOf is one of several clusters that one exporter follows, and how to reach its API server. Where nothing says
// that, it is found as for a single cluster.
type ClusterOf struct {
	Name       string `key:"name" need:"a name such as prod-eu1, which is that of the cluster in records and topics"`
	Kubeconfig string `key:"kubeconfig"` // a file
	Context    string `key:"context"`
	Secret     string `key:"secret" like:"secret"` // with the kubeconfig, as namespace/name, where the exporters run

	// Read tells what the kubeconfig was when it was read last from what it was before; "" is unknown.
	Read string
}

// Task is what one exporter at a time does: a cluster, or a share of its resources.
type Task struct {
	Cluster ClusterOf // the zero value is the only one
	Number  int       // among those of the cluster, from 1
	Count   int       // of those; 0 is that the cluster is not spread over tasks
}

// What stands for a cluster's name and a task's number in values.
const (
	clusterName = "{cluster}"
	taskNumber  = "{task}"
)

// Name tells the task from the others of the configuration: prod-eu1, prod-eu1.2, or 2 of a single cluster.
func (t *Task) Name() string {
	parts := []string{t.Cluster.Name}
	if t.Count > 0 {
		parts = append(parts, strconv.Itoa(t.Number))
	}
	return strings.TrimPrefix(strings.Join(parts, "."), ".")
}

// After is what the number adds to a name that the first task has without it, such as the one of a log that an exporter
// with one task has written.
func (t *Task) After(separator string) string {
	if t.Number < 2 {
		return ""
	}
	return separator + strconv.Itoa(t.Number)
}

// checkPlaces checks that no place that is written to is one for several tasks. A topic of one resource is of one task.
func (c *checker) checkPlaces(sinks []Sink, whose, placeholder string) {
	for i := range sinks {
		s, path := &sinks[i], item("sinks", i)
		s.renamed(func(key, name string, of placeName) string {
			switch {
			case name == "", key == ".nats.stream" && s.NATS.Shared:
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

// placeName says what a name is of that a sink's place has, as the tag place of its key does.
type placeName string

const (
	fixedName    placeName = "fixed"    // no record chooses it, and no sink puts the cluster's name into it
	templateName placeName = "template" // the sink puts the cluster's name into it
	topicName    placeName = "topic"    // likewise, and it may be of one resource
)

// renamed is the sink with what change makes of each name of its places, by the key below the sink.
func (s Sink) renamed(change func(key, name string, of placeName) string) Sink {
	for at, f := range each("", reflect.ValueOf(&s).Elem()) {
		at, of := "."+at, placeName(f.Tag.Get("place"))
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
