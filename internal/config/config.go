package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Config is a whole configuration. The zero value is an empty one. Its JSON form has the file's keys, so that it can
// be shown to a user, and never holds a secret.
type Config struct {
	Cluster string `key:"cluster"`
	// Clusters, where there are any, are followed by one exporter, each as if it were alone: see Of.
	Clusters []ClusterOf `key:"clusters"`
	// Tasks is into how many the resources of each cluster are spread; 0 is one.
	Tasks     int        `key:"tasks" min:"1" max:"64"`
	Resources []Resource `key:"resources"`
	Sinks     []Sink     `key:"sinks"`
	State     State      `key:"state"`
	HA        *HA        `key:"ha"`
	// Only this host is served unless somebody says otherwise: the port also takes what changes state.
	Listen    string    `key:"listen" default:"127.0.0.1:8080"`
	Log       Log       `key:"log"`
	RedactKey Secret    `key:"redactKey" effect:"hashes"`
	Hash      string    `key:"hash" of:"field comparable" default:"field" effect:"hashes"`
	Discovery Discovery `key:"discovery"`
	Snapshot  Snapshot  `key:"snapshot"`
	Audit     *Audit    `key:"audit"`

	// Task is the one that this is the configuration of; the zero value is of an exporter that has one alone.
	Task   Task
	origin origin
}

// Discovery is how the exporter learns what the API server serves. A shorter interval would be a burden to that.
type Discovery struct {
	Interval Duration `key:"interval" default:"10s" min:"1s"`
}

// Snapshot is how full snapshots are read beside the watches.
type Snapshot struct {
	ObjectsPerSecond int `key:"objectsPerSecond"`
}

// State is what outlives the process.
type State struct {
	Dir string    `key:"dir" default:"/var/lib/kubecdc"`
	Log *StateLog `key:"log"`
}

// Log is what the process says about itself.
type Log struct {
	Level  string `key:"level" of:"debug info warn error" default:"info"`
	Format string `key:"format" of:"text json" default:"text"`
}

// LogLevels are the values of Log.Level.
func LogLevels() []string { return allowedBy[Log]("level") }

// LogFormats are the values of Log.Format; the first is the default.
func LogFormats() []string { return allowedBy[Log]("format") }

// check finds what is wrong with values that are there.
func (c *Config) check() []Problem {
	k := &checker{origin: c.origin}
	k.values("", reflect.ValueOf(c).Elem())
	if c.IsSplit() {
		c = c.checkSplit(k)
	}
	if strings.TrimFunc(c.Cluster, isBlank) != c.Cluster {
		k.problem("cluster", "%q begins or ends with white space; leave it out", c.Cluster)
	}
	if !isListenAddress(c.Listen) {
		k.problem("listen", "want an address such as :8080 or 127.0.0.1:8080, have %q", shorten(c.Listen))
	}
	for i := range c.Resources {
		c.Resources[i].check(k, item("resources", i))
	}
	checkEntries(k, c.Resources)
	for i := range c.Sinks {
		c.Sinks[i].check(k, item("sinks", i), c.Resources)
	}
	checkNames(k, c.Sinks)
	if c.Audit != nil {
		c.Audit.check(k, c.Listen)
	}
	checkActors(k, c.Audit, c.Sinks)
	checkInvolved(k, c.Resources, c.Sinks)
	if c.State.Log != nil {
		c.State.Log.check(k, c.Sinks)
	}
	checkApart(k, c.Sinks, c.State.Log, c.Cluster)
	if c.HA != nil {
		c.HA.check(k, c.State.Log, c.Sinks)
	}
	return k.found
}

// SinkNames are the names of the sinks, in their order.
func (c *Config) SinkNames() (names []string) {
	for i := range c.Sinks {
		names = append(names, c.Sinks[i].Name)
	}
	return names
}

// Default fills in what is not set. Parse and Overlay have called it; calling it again changes nothing.
func (c *Config) Default() {
	fillIn(reflect.ValueOf(c).Elem())
	// A sink gets its kind's name where it is the only one of its kind without a name. A second one would have to take
	// its place in the list as its name, and then lose its saved position when the list is reordered.
	nameless := namelessKinds(c.Sinks)
	for i := range c.Sinks {
		s := &c.Sinks[i]
		if s.Name == "" && nameless[s.Kind()] == 1 {
			s.Name = s.Kind()
		}
	}
	// Each sink in Kafka is told which topics are for something else.
	reserved := map[string]string{}
	for _, r := range roles(c.Sinks, c.State.Log) {
		reserved[r.name] = r.what
	}
	for i := range c.Sinks {
		if to := c.Sinks[i].Kafka; to != nil {
			to.Reserved = reserved
		}
	}
}

// MarshalJSON shows the configuration with the file's keys, and none of its secrets.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(show(reflect.ValueOf(c).Elem())) }

// Validate says everything that is wrong with the whole configuration, as *Problems. It is meant to be called when
// file and flags are in. It asks no file system, broker or API server.
func (c *Config) Validate() error {
	problems := &Problems{Source: c.origin.source(), List: c.check()}
	if len(c.Resources) == 0 {
		problems.add(Problem{"resources", 0, "none; name what to watch here or with --resources, such as pods,deployments.apps"})
	}
	if len(c.Sinks) == 0 {
		problems.add(Problem{"sinks", 0, "none; say where changes go here or with --sink, such as --sink -"})
	}
	return problems.err()
}

// conditional has keys whose defaults do not always apply.
type conditional interface{ applies(key string) bool }

// fillIn puts the default of each key where nothing is set.
func fillIn(v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		into := v.FieldByIndex(f.Index)
		for _, inner := range f.inside("", into) {
			fillIn(inner)
		}
		fallback := f.Tag.Get("default")
		if some, is := v.Addr().Interface().(conditional); fallback == "" || !into.IsZero() || is && !some.applies(f.name) {
			continue
		}
		if value, err := f.scalar().parse(fallback); err == nil { // a test parses all of them
			into.Set(reflect.ValueOf(value))
		}
	}
}

// values checks that values are among those that are allowed, and within their bounds.
func (c *checker) values(path string, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at, value := under(path, f.name), v.FieldByIndex(f.Index)
		for p, inner := range f.inside(at, value) {
			c.values(p, inner)
		}
		s := f.scalar()
		switch {
		case value.IsZero():
		case len(f.allowed) > 0 && s != nil:
			c.oneOf(at, value.String(), f.allowed)
		case len(f.allowed) > 0:
			for i := range value.Len() {
				c.oneOf(item(at, i), value.Index(i).String(), f.allowed)
			}
		case s != nil && s.within != nil && !s.within(value.Interface()):
			c.problem(at, "want %s, have %v", s.bound, value.Interface())
		}
	}
}

// show is what is set, by its keys.
func show(v reflect.Value) map[string]any {
	shown := map[string]any{}
	for _, f := range fieldsOf(v.Type()) {
		value := v.FieldByIndex(f.Index)
		var inner []map[string]any
		for _, one := range f.inside("", value) {
			inner = append(inner, show(one))
		}
		switch kind := value.Kind(); {
		case value.IsZero(), (kind == reflect.Slice || kind == reflect.Map) && value.Len() == 0:
		case inner == nil:
			shown[f.name] = value.Interface()
		case kind == reflect.Slice:
			shown[f.name] = inner
		case kind == reflect.Pointer || len(inner[0]) > 0:
			shown[f.name] = inner[0]
		}
	}
	return shown
}

// AsksNamespaces says whether anything of the configuration depends on labels of namespaces.
func (c *Config) AsksNamespaces() bool {
	return slices.ContainsFunc(c.Resources, func(r Resource) bool { return AsksNamespace(r.Filter) }) ||
		slices.ContainsFunc(c.Sinks, func(s Sink) bool { return s.AsksNamespaces() })
}
