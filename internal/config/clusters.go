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

// checkPlaces checks that no two clusters write to one place of the sink.
func (s *Sink) checkPlaces(k *checker, path string) {
	if s.DeadLetter.Dir != "" {
		needsCluster(k, path+".deadLetter.dir", s.DeadLetter.Dir)
	}
	switch {
	case s.File == nil:
	case s.File.Path == stdout:
		k.problem(path+".file.path", "standard output is one for all clusters; choose a file with %s in its name", clusterName)
	default:
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
