package config

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ClusterOf is one of several clusters that one exporter follows, and how to reach its API server. Where nothing says
// that, it is found as for a single cluster.
type ClusterOf struct {
	Name       string `key:"name"`
	Kubeconfig string `key:"kubeconfig"` // a file
	Context    string `key:"context"`
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
	replaced := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	numbered := func(text *string) {
		if task.Count > 0 {
			*text = replaced(*text, taskNumber, strconv.Itoa(task.Number))
		}
	}
	named := func(text *string) {
		if numbered(text); task.Cluster.Name != "" {
			*text = replaced(*text, clusterName, task.Cluster.Name)
		}
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
		s := &one.Sinks[i]
		named(&s.DeadLetter.Dir)
		if s.File != nil {
			s.File = new(*s.File)
			named(&s.File.Path)
		}
		if to := s.Kafka; to != nil {
			s.Kafka = new(*to)
			named(&s.Kafka.TransactionalID)
			numbered(&s.Kafka.Topic)
			s.Kafka.Topics = maps.Clone(to.Topics)
			for name, topic := range s.Kafka.Topics {
				numbered(&topic)
				s.Kafka.Topics[name] = topic
			}
			if to.Signals != nil {
				s.Kafka.Signals = new(*to.Signals)
				numbered(&s.Kafka.Signals.Topic)
			}
		}
		if to := s.NATS; to != nil {
			s.NATS = new(*to)
			named(&s.NATS.KV)
			numbered(&s.NATS.Stream)
			numbered(&s.NATS.Subject)
			s.NATS.Subjects = maps.Clone(to.Subjects)
			for name, subject := range s.NATS.Subjects {
				numbered(&subject)
				s.NATS.Subjects[name] = subject
			}
			if to.Service != nil {
				s.NATS.Service = new(*to.Service)
				numbered(&s.NATS.Service.Subject)
			}
		}
	}
	if c.State.Log != nil {
		one.State.Log = new(*c.State.Log)
		one.State.Log.Name += task.After("_")
	}
	if c.HA != nil {
		one.HA = new(*c.HA)
		if named(&one.HA.Lease); one.HA.Lease != "" {
			one.HA.Lease += task.After(".")
		}
	}
	return &one
}

// IsOurs says whether the task whose configuration it is has the resource, by kubectl's full name, that the entry stands
// for.
func (r *Resource) IsOurs(resource string) bool {
	return r.of.Count == 0 || r.Owner(resource) == r.of.Number
}

// Owner is the number of the task that has the resource, 0 where there are no tasks. Rendezvous hashing moves as few
// resources as it can when the number of tasks changes.
func (r *Resource) Owner(resource string) int {
	if r.Task != 0 || r.of.Count == 0 {
		return r.Task
	}
	best, most := 0, uint64(0)
	for n := 1; n <= r.of.Count; n++ {
		hash := sha256.Sum256([]byte(resource + "/" + strconv.Itoa(n)))
		if score := binary.BigEndian.Uint64(hash[:]); score > most {
			best, most = n, score
		}
	}
	return best
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
	return c.Of(task)
}

func (c *Config) checkClusters(k *checker) {
	if c.Cluster != "" {
		k.problem("cluster", "clusters have names of their own; leave it out")
	}
	if c.Audit != nil {
		k.problem("audit", "its events do not say of which of several clusters they are; leave it out, or run an exporter for each cluster")
	}
	for i := range c.Clusters {
		of, path := &c.Clusters[i], item("clusters", i)
		isNamed := func(other ClusterOf) bool { return other.Name == of.Name }
		isReached := func(other ClusterOf) bool { return other.Kubeconfig == of.Kubeconfig && other.Context == of.Context }
		switch {
		case of.Name == "":
			k.problem(path+".name", "missing; want a name such as prod-eu1, which is that of the cluster in records and topics")
		case !isSubdomain(of.Name) || strings.Contains(of.Name, "."):
			k.problem(path+".name", "%q cannot be the name of one of several clusters; want lower case letters, digits and -", shorten(of.Name))
		case slices.ContainsFunc(c.Clusters[:i], isNamed):
			k.problem(path+".name", "another cluster is called %q, too; choose another name", of.Name)
		}
		if at := slices.IndexFunc(c.Clusters[:i], isReached); at >= 0 {
			k.problem(path, "it is reached as %s is, and so is the same cluster; give it another kubeconfig or context", item("clusters", at))
		}
	}
	p := &places{k, "all clusters"}
	for i := range c.Sinks {
		p.ofSink(&c.Sinks[i], item("sinks", i), clusterName)
	}
	if c.State.Log != nil {
		p.apart("state.log.name", c.State.Log.Name, clusterName)
	}
	if c.HA != nil && c.HA.Lease != "" {
		p.apart("ha.lease", c.HA.Lease, clusterName)
	}
}

func (c *Config) checkTasks(k *checker) {
	if c.HA == nil {
		k.problem("tasks", "several tasks are for several exporters, which share them; add ha, or leave it out")
	}
	if c.Audit != nil {
		k.problem("audit", "its events are of the resources of all tasks; leave out one of audit and tasks")
	}
	names, open := map[string]bool{}, false
	for i := range c.Resources {
		r, path := &c.Resources[i], item("resources", i)
		names[r.Name], open = true, open || isWildcard(r.Name)
		if first := EntriesOf(c.Resources, r.Name)[0]; first.Task != r.Task {
			k.problem(path+".task", "%s has another one in an entry before; all entries of a resource have the same; write it alike", r.Name)
		}
		if r.Task > c.Tasks {
			k.problem(path+".task", "want a number from 1 to %d, as many as there are tasks, have %d", c.Tasks, r.Task)
		}
		if len(r.Involved) > 0 {
			k.problem(path+".involved", "the objects that events are about may be of another task; leave out one of involved and tasks")
		}
	}
	if !open && len(names) > 0 && len(names) < c.Tasks { // none are on the command line
		k.problem("tasks", "%d is more than there are resources, which are %d; take at most as many", c.Tasks, len(names))
	}
	p := &places{k, "all tasks"}
	for i := range c.Sinks {
		p.ofSink(&c.Sinks[i], item("sinks", i), taskNumber)
	}
}

// places checks that places are not one for several tasks.
type places struct {
	*checker
	of string
}

// ofSink checks all that the sink writes to. A topic of one resource is of one task.
func (p *places) ofSink(s *Sink, path, placeholder string) {
	if s.DeadLetter.Dir != "" {
		p.apart(path+".deadLetter.dir", s.DeadLetter.Dir, placeholder)
	}
	switch {
	case s.File == nil:
	case s.File.Path == stdout:
		p.problem(path+".file.path", "standard output is one for %s; choose a file with %s in its name", p.of, placeholder)
	default:
		p.apart(path+".file.path", s.File.Path, placeholder)
	}
	if to := s.NATS; to != nil {
		switch {
		case to.KV != "":
			p.apart(path+".nats.kv", to.KV, placeholder)
		case !to.Shared:
			p.apart(path+".nats.stream", to.Stream, placeholder)
			fallthrough
		default: // subjects of two streams may not overlap
			p.apart(path+".nats.subject", to.Subject, placeholder)
			p.allApart(path+".nats.subjects", to.Subjects, placeholder)
		}
		if to.Service != nil {
			p.apart(path+".nats.service.subject", to.Service.Subject, placeholder)
		}
	}
	if to := s.Kafka; to != nil {
		topic := []string{placeholder}
		if placeholder == taskNumber {
			topic = append(topic, "{resource}")
		}
		p.apart(path+".kafka.topic", to.Topic, topic...)
		p.allApart(path+".kafka.topics", to.Topics, topic...)
		if to.TransactionalID != "" {
			p.apart(path+".kafka.transactionalId", to.TransactionalID, placeholder)
		}
		if to.Signals != nil {
			p.apart(path+".kafka.signals.topic", to.Signals.Topic, placeholder)
		}
	}
}

func (p *places) allApart(path string, templates map[string]string, by ...string) {
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		p.apart(under(path, name), templates[name], by...)
	}
}

// apart checks that the value has one of the placeholders in it.
func (p *places) apart(path, value string, by ...string) {
	if !slices.ContainsFunc(by, func(placeholder string) bool { return strings.Contains(value, placeholder) }) {
		p.problem(path, "%q is one place for %s; have %s in it", shorten(value), p.of, strings.Join(by, " or "))
	}
}
