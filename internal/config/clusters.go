package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// ClusterOf is one of several clusters that one exporter follows, and how to reach its API server. Where nothing says
// that, it is found as for a single cluster.
type ClusterOf struct {
	Name       string `key:"name"`
	Kubeconfig string `key:"kubeconfig"` // a file
	Context    string `key:"context"`
}

// clusterName is what stands for a cluster's name in values.
const clusterName = "{cluster}"

// Of is the configuration of one of the clusters, as if the exporter followed that one alone: below the directory of
// the state it has its own, and its name is in the place of {cluster}, but for what the sinks themselves put it into.
func (c *Config) Of(of *ClusterOf) *Config {
	one := *c
	named := func(text *string) { *text = strings.ReplaceAll(*text, clusterName, of.Name) }
	one.Clusters, one.Cluster = nil, of.Name
	one.State.Dir = filepath.Join(c.State.Dir, of.Name)
	one.Sinks = slices.Clone(c.Sinks)
	for i := range one.Sinks {
		s := &one.Sinks[i]
		named(&s.DeadLetter.Dir)
		if s.File != nil {
			file := *s.File
			s.File = &file
			named(&file.Path)
		}
		if s.Kafka != nil {
			kafka := *s.Kafka
			s.Kafka = &kafka
			named(&kafka.TransactionalID)
		}
		if s.NATS != nil {
			nats := *s.NATS
			s.NATS = &nats
			named(&nats.KV)
		}
	}
	if c.HA != nil {
		ha := *c.HA
		one.HA = &ha
		named(&ha.Lease)
	}
	return &one
}

// checkClusters checks that each cluster is another one, and has places of its own for all that is written of it.
func (c *Config) checkClusters(k *checker) {
	if c.Cluster != "" {
		k.problem("cluster", "clusters have names of their own; leave it out")
	}
	if c.Audit != nil {
		k.problem("audit", "its events do not say of which of several clusters they are; leave it out, or run an exporter for each cluster")
	}
	for i := range c.Clusters {
		of, path := &c.Clusters[i], item("clusters", i)
		same := func(is func(other *ClusterOf) bool) int {
			return slices.IndexFunc(c.Clusters[:i], func(other ClusterOf) bool { return is(&other) })
		}
		switch {
		case of.Name == "":
			k.problem(path+".name", "missing; want a name such as prod-eu1, which is that of the cluster in records and topics")
		case !isSubdomain(of.Name) || strings.Contains(of.Name, "."):
			k.problem(path+".name", "%q cannot be the name of one of several clusters; want lower case letters, digits and -", shorten(of.Name))
		case same(func(other *ClusterOf) bool { return other.Name == of.Name }) >= 0:
			k.problem(path+".name", "another cluster is called %q, too; choose another name", of.Name)
		}
		if at := same(func(other *ClusterOf) bool { return other.Kubeconfig == of.Kubeconfig && other.Context == of.Context }); at >= 0 {
			k.problem(path, "it is reached as %s is, and so is the same cluster; give it another kubeconfig or context", item("clusters", at))
		}
	}
	for i := range c.Sinks {
		c.Sinks[i].checkPlaces(k, item("sinks", i))
	}
	if c.State.Log != nil {
		needsCluster(k, "state.log.name", c.State.Log.Name)
	}
	if c.HA != nil && c.HA.Lease != "" {
		needsCluster(k, "ha.lease", c.HA.Lease)
	}
}

// checkPlaces checks that no two clusters write to one place of the sink.
func (s *Sink) checkPlaces(k *checker, path string) {
	if s.DeadLetter.Dir != "" {
		needsCluster(k, path+".deadLetter.dir", s.DeadLetter.Dir)
	}
	if s.File != nil {
		if s.File.Path == stdout {
			k.problem(path+".file.path", "standard output is one for all clusters; choose a file with %s in its name", clusterName)
			return
		}
		needsCluster(k, path+".file.path", s.File.Path)
	}
	if to := s.NATS; to != nil {
		switch {
		case to.KV != "":
			needsCluster(k, path+".nats.kv", to.KV)
		case to.Shared:
			needsCluster(k, path+".nats.subject", to.Subject)
			needsClusters(k, path+".nats.subjects", to.Subjects)
		default:
			needsCluster(k, path+".nats.stream", to.Stream)
		}
		if to.Service != nil {
			needsCluster(k, path+".nats.service.subject", to.Service.Subject)
		}
	}
	if to := s.Kafka; to != nil {
		needsCluster(k, path+".kafka.topic", to.Topic)
		needsClusters(k, path+".kafka.topics", to.Topics)
		if to.TransactionalID != "" {
			needsCluster(k, path+".kafka.transactionalId", to.TransactionalID)
		}
		if to.Signals != nil {
			needsCluster(k, path+".kafka.signals.topic", to.Signals.Topic)
		}
	}
}

func needsClusters(k *checker, path string, templates map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		needsCluster(k, under(path, name), templates[name])
	}
}

func needsCluster(k *checker, path, value string) {
	if !strings.Contains(value, clusterName) {
		k.problem(path, "%q is one place for all clusters; have %s in it", shorten(value), clusterName)
	}
}
