package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Config is a whole configuration. The zero value is an empty one.
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
	Listen    string    `key:"listen" like:"address" default:"127.0.0.1:8080"`
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
func (c *Config) check(k *checker) {
	if c.IsSplit() {
		c = c.checkSplit(k)
	}
	k.values(reflect.ValueOf(c).Elem())
	k.problemIf(strings.TrimFunc(c.Cluster, isBlank) != c.Cluster, "cluster", "%q begins or ends with white space; leave it out", c.Cluster)
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
}

// IsSplit says whether there are several tasks, or clusters.
func (c *Config) IsSplit() bool { return len(c.Clusters) > 0 || c.Tasks > 0 }

// AllTasks are those of all clusters.
func (c *Config) AllTasks() (all []Task) {
	clusters := c.Clusters
	if len(clusters) == 0 {
		clusters = []ClusterOf{{}}
	}
	for _, of := range clusters {
		for n := range max(c.Tasks, 1) {
			all = append(all, Task{Cluster: of, Number: n + 1, Count: c.Tasks})
		}
	}
	return all
}

// Of is the configuration of one of the tasks, as if the exporter had that alone: below the directory of the state it
// has its own, and the cluster's name and its number are in the place of {cluster} and {task}, but for the names that
// the sinks themselves put into places.
func (c *Config) Of(task Task) *Config {
	one := *c
	one.Clusters, one.Tasks, one.Task = nil, 0, task
	named := func(_, text, of string) string {
		if task.Count > 0 {
			text = strings.ReplaceAll(text, taskNumber, strconv.Itoa(task.Number))
		}
		if task.Cluster.Name != "" && of == fixedName {
			text = strings.ReplaceAll(text, clusterName, task.Cluster.Name)
		}
		return text
	}
	if task.Cluster.Name != "" {
		one.Cluster = task.Cluster.Name
		one.State.Dir = filepath.Join(one.State.Dir, task.Cluster.Name)
	}
	if task.Count > 0 {
		one.State.Dir = filepath.Join(one.State.Dir, strconv.Itoa(task.Number))
	}
	one.Resources, one.Sinks = slices.Clone(c.Resources), slices.Clone(c.Sinks)
	for i := range one.Resources {
		one.Resources[i].of = task
	}
	for i := range one.Sinks {
		one.Sinks[i] = one.Sinks[i].renamed(named)
	}
	if c.State.Log != nil {
		one.State.Log = new(*c.State.Log)
		one.State.Log.Name += task.After("_")
	}
	if c.HA != nil {
		one.HA = new(*c.HA)
		if one.HA.Lease = named("", one.HA.Lease, fixedName); one.HA.Lease != "" {
			one.HA.Lease += task.After(".")
		}
	}
	one.reserve()
	return &one
}

// checkSplit checks that each task is another one, as far as names and files tell, and has places of its own for all
// that it writes. It returns the configuration as any of them has it.
func (c *Config) checkSplit(k *checker) *Config {
	task := Task{Number: 1, Count: c.Tasks}
	if len(c.Clusters) > 0 {
		task.Cluster.Name = "x"
		c.checkClusters(k)
	}
	if c.Tasks > 0 {
		c.checkTasks(k)
	}
	one := c.Of(task)
	one.Clusters, one.Tasks = c.Clusters, c.Tasks
	return one
}

func (c *Config) checkClusters(k *checker) {
	k.problemIf(c.Cluster != "", "cluster", "clusters have names of their own; leave it out")
	k.problemIf(c.Audit != nil, "audit",
		"its events do not say of which of several clusters they are; leave it out, or run an exporter for each cluster")
	for i := range c.Clusters {
		of, path := &c.Clusters[i], item("clusters", i)
		isNamed := func(other ClusterOf) bool { return other.Name == of.Name }
		isReached := func(other ClusterOf) bool {
			return other.Kubeconfig == of.Kubeconfig && other.Context == of.Context && other.Secret == of.Secret
		}
		switch {
		case of.Name == "": // which is missing
		case !isSubdomain(of.Name) || strings.Contains(of.Name, "."):
			k.problem(path+".name", "%q cannot be the name of one of several clusters; want lower case letters, digits and -", shorten(of.Name))
		case slices.ContainsFunc(c.Clusters[:i], isNamed):
			k.problem(path+".name", "another cluster is called %q, too; choose another name", of.Name)
		}
		k.problemIf(of.Secret != "" && of.Kubeconfig != "", path+".secret",
			"kubeconfig says where the kubeconfig is, too; leave one of them out")
		if at := slices.IndexFunc(c.Clusters[:i], isReached); at >= 0 {
			k.problem(path, "it is reached as %s is, and so is the same cluster; give it another kubeconfig, secret or context", item("clusters", at))
		}
	}
	const all = "all clusters"
	k.checkPlaces(c.Sinks, all, clusterName)
	if c.State.Log != nil {
		k.checkApart("state.log.name", c.State.Log.Name, all, clusterName)
	}
	if c.HA != nil && c.HA.Lease != "" {
		k.checkApart("ha.lease", c.HA.Lease, all, clusterName)
	}
}

func (c *Config) checkTasks(k *checker) {
	k.problemIf(c.HA == nil, "tasks", "several tasks are for several exporters, which share them; add ha, or leave it out")
	k.problemIf(c.Audit != nil, "audit", "its events are of the resources of all tasks; leave out one of audit and tasks")
	names, open := map[string]bool{}, false
	for i := range c.Resources {
		r, path := &c.Resources[i], item("resources", i)
		names[r.Name], open = true, open || isWildcard(r.Name)
		if first := EntriesOf(c.Resources, r.Name)[0]; first.Task != r.Task {
			k.problem(path+".task", "%s has another one in an entry before; all entries of a resource have the same; write it alike", r.Name)
		}
		k.problemIf(r.Task > c.Tasks, path+".task", "want a number from 1 to %d, as many as there are tasks, have %d", c.Tasks, r.Task)
		k.problemIf(len(r.Involved) > 0, path+".involved",
			"the objects that events are about may be of another task; leave out one of involved and tasks")
	}
	if !open && len(names) > 0 && len(names) < c.Tasks { // none are on the command line
		k.problem("tasks", "%d is more than there are resources, which are %d; take at most as many", c.Tasks, len(names))
	}
	k.checkPlaces(c.Sinks, "all tasks", taskNumber)
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
	c.reserve()
}

// reserve tells each sink in Kafka which topics are for something else.
func (c *Config) reserve() {
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

// Validate says everything that is wrong with the whole configuration, as *Problems. It is meant to be called when
// file and flags are in. It asks no file system, broker or API server.
func (c *Config) Validate() error {
	k := &checker{origin: c.origin, settled: map[string]bool{}}
	c.check(k)
	if len(c.Resources) == 0 {
		k.found = append(k.found, Problem{"resources", 0, "none; name what to watch here or with --resources, such as pods,deployments.apps"})
	}
	if len(c.Sinks) == 0 {
		k.found = append(k.found, Problem{"sinks", 0, "none; say where changes go here or with --sink, such as --sink -"})
	}
	return k.problems(c.origin.source())
}

// fillIn puts the default of each key where nothing is set.
func fillIn(of reflect.Value) {
	for _, f := range each("", of) {
		fallback := f.Tag.Get("default")
		some, is := f.of.Addr().Interface().(interface{ applies(key string) bool }) // not always
		if fallback != "" && f.value.IsZero() && (!is || some.applies(f.name)) {
			_ = set(f.value, fallback) // a test parses all of them
		}
	}
}

// values checks that values are among those that are allowed, and within their bounds.
func (c *checker) values(of reflect.Value) {
	for at, f := range each("", of) {
		for _, other := range fieldsOf(f.of.Type()) {
			c.problemIf(other.name == f.Tag.Get("with") && f.value.IsZero() != f.of.FieldByIndex(other.Index).IsZero(),
				strings.TrimSuffix(at, "."+f.name), "%s and %s go together; give both or neither", f.name, other.name)
		}
		s, need, check := f.scalar(), f.Tag.Get("need"), syntaxes()[f.Tag.Get("like")]
		if len(f.allowed) > 0 {
			check = among(f.allowed)
		}
		switch {
		case need != "" && (f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0):
			c.problem(at, "missing; want %s", need)
		case f.value.IsZero():
		case check != nil:
			found := texts(at, f.value)
			for _, path := range slices.Sorted(maps.Keys(found)) {
				c.wrong(path, check(found[path]))
			}
		case s != nil && !s.within(f.value):
			c.problem(at, "want %s, have %v", s.bound, f.value.Interface())
		}
	}
}

// AsksNamespaces says whether anything of the configuration depends on labels of namespaces.
func (c *Config) AsksNamespaces() bool {
	return slices.ContainsFunc(c.Resources, func(r Resource) bool { return AsksNamespace(r.Filter) }) ||
		slices.ContainsFunc(c.Sinks, func(s Sink) bool { return s.AsksNamespaces() })
}
