package config

import (
	"maps"
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

// checkClusters checks that each is another one, as far as names and files tell.
func checkClusters(k *checker, clusters []ClusterOf) {
	for i := range clusters {
		of, path := &clusters[i], item("clusters", i)
		same := func(is func(other *ClusterOf) bool) int {
			return slices.IndexFunc(clusters[:i], func(other ClusterOf) bool { return is(&other) })
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
